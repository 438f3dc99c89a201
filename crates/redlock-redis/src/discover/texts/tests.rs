//! The words for each wrong input.

use deadpool_redis::redis::{IntoConnectionInfo, parse_redis_value};

use super::*;

const SENTINELS: &str = "redis+sentinel://10.0.0.1,10.0.0.2/orders";
const CLUSTER: &str = "redis+cluster://10.0.0.1,10.0.0.2?vote=1of3";

fn read(url: &str) -> NamingUrl {
    NamingUrl::read(url).unwrap().unwrap()
}

fn says(error: &str) -> RedisError {
    let said = parse_redis_value(format!("-{error}\r\n").as_bytes());
    said.unwrap().extract_error().unwrap_err()
}

/// A line of its own, with what is wrong before the semicolon and what to do behind it.
fn assert_is_line(text: &str, wrong: &str, advice: &str) {
    let (found, told) = text.split_once("; ").unwrap_or((text, ""));
    assert!(found.contains(wrong), "{text}");
    assert!(told.contains(advice), "{text}");
    assert!(!text.contains(['\n', '"', '{']), "{text}");
}

#[test]
fn a_sentinel_that_refuses_is_told_of_with_the_remedy() {
    let plain = read(SENTINELS);
    let noperm = says("NOPERM this user has no permissions to run the 'sentinel|myid' command");
    let rights = rights::FOR_SENTINELS;
    assert_is_line(
        &why_no_sentinel(&noperm, &plain),
        "its user may not",
        rights,
    );
    let noauth = says("NOAUTH Authentication required.");
    let told = why_no_sentinel(&noauth, &plain);
    assert_is_line(&told, "it wants a password", "?sentinel_password=");
    assert!(!told.contains("before the @"), "{told}");
    let before = read("redis+sentinel://:hunter2@s1/orders");
    let told = why_no_sentinel(&noauth, &before);
    assert_is_line(
        &told,
        "the one before the @ is the master's",
        "?sentinel_password=",
    );
    assert!(!told.contains("hunter2"), "{told}");
    let unknown = says("ERR unknown command 'SENTINEL', with args beginning with: 'MYID'");
    assert_is_line(&why_no_sentinel(&unknown, &plain), "no Sentinel", "26379");
}

#[test]
fn an_unknown_master_is_told_of_beside_the_known_ones() {
    assert!(is_unknown_master(&says(
        "ERR No such master with that name"
    )));
    let told = unknown_master(["payments", "orders.v2", "a b\r\n"].into_iter());
    assert_is_line(&told, "but orders.v2, payments", "behind the hosts");
    assert_is_line(
        &unknown_master([].into_iter()),
        "no such master",
        "SENTINEL MASTERS",
    );
    let many: Vec<String> = (10..30).map(|n| format!("m{n}")).collect();
    let told = unknown_master(many.iter().map(String::as_str));
    assert!(
        told.contains("m17 and others") && !told.contains("m18"),
        "{told}"
    );
}

#[test]
fn the_other_kind_of_connection_is_told_of_in_the_form_of_the_url() {
    let [sentinels, cluster] = [SENTINELS, CLUSTER].map(read);
    let with_one = read("redis+sentinel://s1/m?sentinel_password=hunter2");
    let check = |why, url, wrong, advice| {
        let told = no_informant(why, url);
        assert_is_line(&told, wrong, advice);
        assert!(!told.contains("hunter2"), "{told}");
    };
    check(TLS_SERVER, &sentinels, "speaks TLS", "?sentinel_tls=yes");
    check(
        HANGS_UP,
        &sentinels,
        "as a TLS port does",
        "?sentinel_tls=yes",
    );
    check(
        HANGS_UP,
        &cluster,
        "as a TLS port does",
        "rediss+cluster://",
    );
    check(NO_TLS, &sentinels, "does not speak TLS", "?sentinel_tls=no");
    check(TLS_SERVER, &cluster, "speaks TLS", "rediss+cluster://");
    check(NO_TLS, &cluster, "does not speak TLS", "redis+cluster://");
    check(
        AUTHENTICATION,
        &with_one,
        "refuses ?sentinel_user=",
        "or neither",
    );
    check(AUTHENTICATION, &cluster, "authentication failed", "a user");
}

#[test]
fn an_address_that_leads_elsewhere_is_told_of_with_what_announces_it() {
    let refused = NotOpened {
        is_unreachable: true,
        ..NotOpened::clear("Connection refused")
    };
    let told = |url: &str, server: &str, why: &NotOpened| {
        let server = Address::of(&server.into_connection_info().unwrap());
        no_server(&read(url), &server, why)
    };
    let nat = told(SENTINELS, "redis://192.168.0.9", &refused);
    assert_is_line(
        &nat,
        "192.168.0.9:6379: Connection refused",
        "replica-announce-ip",
    );
    assert!(nat.contains("sentinel monitor"), "{nat}");
    let loopback = told(SENTINELS, "redis://127.0.0.1", &refused);
    assert_is_line(&loopback, "127.0.0.1:6379", "leads each machine to itself");
    let local = told(
        "redis+sentinel://localhost/m",
        "redis://127.0.0.1",
        &refused,
    );
    assert!(!local.contains("to itself"), "{local}");
    let cluster = told(CLUSTER, "redis://192.168.0.9", &refused);
    assert_is_line(&cluster, "192.168.0.9:6379", "cluster-announce-ip");
    let name = NotOpened::clear("invalid peer certificate: NotValidForName");
    let named = told(CLUSTER, "redis://192.168.0.9", &name);
    assert_is_line(&named, "NotValidForName", "cluster-announce-hostname");
    let other = NotOpened::clear("it wants a password");
    let said = told(CLUSTER, "redis://192.168.0.9", &other);
    assert!(said.ends_with("it wants a password"), "{said}");
}

#[test]
fn more_votes_than_masters_are_told_of_with_the_number_of_both() {
    for (votes, masters, advice) in [
        (5, 3, "?votes=3"),
        (5, 4, "?votes=3"),
        (9, 6, "?votes=5"),
        (3, 2, "leave votes out"),
    ] {
        let told = too_many_votes(votes, masters).unwrap();
        assert_is_line(&told, &format!("votes={votes}"), advice);
        assert!(told.contains(&format!("{masters} masters")), "{told}");
    }
    assert_eq!(too_many_votes(3, 3), None);
    assert_eq!(too_many_votes(3, 6), None);
}
