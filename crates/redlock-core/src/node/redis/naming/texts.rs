//! Why a server is not counted on, in words for an operator.

use std::{fmt::Write as _, sync::Arc};

use deadpool_redis::redis::RedisError;
use redlock_proto::Shortfall;

use super::{
    super::{
        Address, RedisNode,
        error::{AUTHENTICATION, NotOpened, TLS_SERVER, is_unknown_command, reason},
        probe::{HANGS_UP, NO_TLS},
    },
    directory::{Directory, Subject},
    poll::Round,
};

/// Returns why no server is named by a majority of the informants that are known.
pub(super) fn no_majority(subject: &Subject, round: &Round, slot: u16) -> String {
    let count = round.hearing(slot).count();
    let needed = count / 2 + 1;
    refused(
        &Shortfall::NoMajority { needed, count },
        subject,
        round,
        slot,
    )
}

/// Returns why the server that most informants name is not counted on, and what to do.
pub(super) fn refused(
    shortfall: &Shortfall,
    subject: &Subject,
    round: &Round,
    slot: u16,
) -> String {
    let mut why = match shortfall {
        Shortfall::NoMajority { needed, count } => match subject {
            Subject::Master(name) => format!(
                "fewer than {needed} of {count} Sentinels name one server as {name} under one epoch"
            ),
            Subject::SlotOwner(_) => format!(
                "fewer than {needed} of {count} nodes of the Cluster name one owner of the namespace's slot under one epoch"
            ),
        },
        Shortfall::NotAllNamed { named, running } => format!(
            "{running} Sentinels watch this master and the URL names {named}; the URL of each client must name all of them, which SENTINEL SENTINELS lists"
        ),
        Shortfall::Unsettled {
            heard,
            count,
            greater: None,
        } => format!(
            "{heard} of {count} {} have answered; a list of them in the server's mark begins once all have",
            subject.informants()
        ),
        Shortfall::Unsettled {
            greater: Some(epoch),
            ..
        } => format!(
            "one of {} names another server or term, under epoch {epoch}; a list of them in the server's mark begins once all of them agree",
            subject.informants()
        ),
        Shortfall::Unlisted {
            listed,
            needed,
            known: None,
        } => format!(
            "of {}, {listed} are on the list in the server's mark and {needed} are needed; it lists others once all have answered",
            subject.informants()
        ),
        Shortfall::Unlisted {
            listed,
            needed,
            known: Some(known),
        } => {
            let forget = match subject {
                Subject::Master(name) => format!(
                    "if some of them are gone for good, type SENTINEL RESET {name} on each Sentinel, one after the other"
                ),
                Subject::SlotOwner(_) => {
                    "if some of them are gone for good, type CLUSTER FORGET on each node".to_owned()
                }
            };
            format!(
                "of {}, {listed} are on the list in the server's mark and {needed} are needed, and {known} are known, which is more than it counts; {forget}",
                subject.informants()
            )
        }
        Shortfall::Moving => {
            "its slot is on its way to another server; it votes a quarantine after the move has ended"
                .to_owned()
        }
        Shortfall::OwnerSilent => {
            "the owner of its slot does not answer itself, so its slot may be on its way".to_owned()
        }
    };
    if matches!(
        shortfall,
        Shortfall::NoMajority { .. } | Shortfall::Unlisted { .. }
    ) {
        forgotten(round, &mut why);
    }
    let testimonies = round.testimonies.iter();
    let ownerless = testimonies.filter(|it| it.statement(slot).names.is_none());
    let count = ownerless.count();
    if count > 0 {
        let _ = write!(
            why,
            ", {count} of those that answer name no owner of the slot"
        );
    }
    silent(round, &mut why);
    why
}

/// Adds which informants have not answered; what is wrong with several is said once.
fn silent(round: &Round, why: &mut String) {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in &round.failed {
        if !reasons.contains(&&**reason) {
            reasons.push(reason);
        }
    }
    for reason in reasons {
        let same = round.failed.iter().filter(|(_, its)| **its == *reason);
        let addresses: Vec<String> = same.map(|(address, _)| address.to_string()).collect();
        let _ = write!(why, ", {}: {reason}", addresses.join(" and "));
    }
}

/// Adds which members of a Cluster have failed for good, as far as it knows.
fn forgotten(round: &Round, why: &mut String) {
    let testimonies = round.testimonies.iter();
    let mut failed: Vec<&str> = testimonies.flat_map(|it| it.failed_members()).collect();
    failed.sort_unstable();
    failed.dedup();
    if !failed.is_empty() {
        let (count, ids) = (failed.len(), failed.join(" "));
        let _ = write!(
            why,
            "; {count} of them have failed: if they are gone for good, type CLUSTER FORGET on each node for {ids}"
        );
    }
}

/// Returns what is wrong with the number of votes in the URL of a Cluster, and what to do.
pub(super) fn too_many_votes(votes: u8, masters: usize) -> Option<String> {
    let advice = match masters {
        masters if masters >= votes.into() => return None,
        0..3 => "leave votes out".to_owned(),
        masters => format!("write ?votes={}", (masters - 1) / 2 * 2 + 1),
    };
    Some(format!(
        "the URL has votes={votes}, and the Cluster has {masters} masters with slots, which is the most that votes can be; {advice} in the URL of all clients and move to a new namespace, or add masters"
    ))
}

/// Returns whether a Sentinel knows no master of the name that it was asked for.
pub(super) fn is_unknown_master(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    words.contains("No such master")
}

/// Returns that a Sentinel knows no master of the name that it was asked for, but these.
pub(super) fn unknown_master<'a>(known: impl Iterator<Item = &'a str>) -> Arc<str> {
    let mut known: Vec<&str> = known.filter(|name| is_name_of_master(name)).collect();
    known.sort_unstable();
    let more = if known.len() > MOST_NAMES {
        " and others"
    } else {
        ""
    };
    known.truncate(MOST_NAMES);
    match &*known {
        [] => "it knows no such master; write the name behind the hosts of the URL that SENTINEL MASTERS shows there".into(),
        known => {
            let known = known.join(", ");
            format!("it knows no such master, but {known}{more}; write one of these behind the hosts of the URL").into()
        }
    }
}

/// Returns why a Sentinel does not answer the questions about a master, and what to do.
pub(super) fn why_no_sentinel(error: &RedisError, directory: &Directory) -> Arc<str> {
    match error.code() {
        _ if is_unknown_command(error) => NO_SENTINEL.into(),
        Some("NOPERM") => {
            let rights = RedisNode::RIGHTS_FOR_SENTINELS;
            format!("its user may not ask it for the master; give this user {rights} there").into()
        }
        Some("NOAUTH") => {
            let has_one = directory.settings.redis_settings().password().is_some();
            let why = match has_one {
                true => "it wants a password, and the one before the @ is the master's",
                false => "it wants a password",
            };
            format!("{why}; {SENTINEL_PASSWORD}").into()
        }
        _ => reason(error),
    }
}

/// Returns why there is no connection to an informant, and what to do in its URL; `why` is about any server.
pub(super) fn no_informant(why: &str, directory: &Directory) -> Arc<str> {
    let is_sentinel = !directory.is_cluster();
    match why {
        TLS_SERVER if is_sentinel => "it speaks TLS; write ?sentinel_tls=yes, or rediss+sentinel:// if the master does, too",
        TLS_SERVER => "it speaks TLS; write rediss+cluster://",
        HANGS_UP if is_sentinel => {
            "it hangs up without an answer, as a TLS port does; write ?sentinel_tls=yes, or rediss+sentinel:// if the master speaks TLS, too"
        }
        HANGS_UP => "it hangs up without an answer, as a TLS port does; write rediss+cluster://",
        NO_TLS if is_sentinel => "it does not speak TLS; write ?sentinel_tls=no, or redis+sentinel:// if the master does not, either",
        NO_TLS => "it does not speak TLS; write redis+cluster://",
        AUTHENTICATION if is_sentinel && directory.has_sentinel_password() => "it refuses ?sentinel_user= or ?sentinel_password=; write those that it knows, or neither if it wants none",
        other => other,
    }
    .into()
}

/// Returns why there is no session with the server that a majority names, and what to do if it is named by an address
/// that leads elsewhere.
pub(super) fn no_server(directory: &Directory, server: &Address, why: &NotOpened) -> String {
    let names = directory.subject.informants();
    let reason = &why.reason;
    let said = format!("{names} say that its server is {server}: {reason}");
    let is_cluster = directory.is_cluster();
    if reason.contains("NotValidForName") {
        let advice = if is_cluster {
            "set cluster-announce-hostname on each node to the name in its certificate"
        } else {
            "let Sentinels and servers name each other by the names in their certificates: sentinel announce-hostnames yes, and replica-announce-ip NAME"
        };
        return format!("{said}; {advice}");
    }
    if !why.is_unreachable {
        return said;
    }
    let mut informants = directory.informants.iter().map(Address::of);
    let is_wrong_loopback = server.is_loopback() && !informants.all(|it| it.is_loopback());
    let condition = if is_wrong_loopback {
        "a loopback address leads each machine to itself:"
    } else {
        "if it runs and clients do not reach it there,"
    };
    let advice = if is_cluster {
        "set cluster-announce-ip and cluster-announce-port on each node to what they reach"
    } else {
        "name it in sentinel monitor by an address that they reach, and set replica-announce-ip and replica-announce-port on its servers"
    };
    format!("{said}; {condition} {advice}")
}

/// Returns whether a name is one that the URL may have, which may be shown to operators.
fn is_name_of_master(name: &str) -> bool {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(is_of_a_name)
}

/// More names of masters than that fill a line.
const MOST_NAMES: usize = 8;
const NO_SENTINEL: &str = "it is no Sentinel; give the port of one, such as 26379";
const SENTINEL_PASSWORD: &str =
    "write ?sentinel_password=… behind the master's name, and &sentinel_user=… if it has users";

#[cfg(test)]
mod tests {
    use deadpool_redis::redis::{IntoConnectionInfo, parse_redis_value};

    use super::*;

    const SENTINELS: &str = "redis+sentinel://10.0.0.1,10.0.0.2/orders";
    const CLUSTER: &str = "redis+cluster://10.0.0.1,10.0.0.2?vote=1of3";

    fn directory(url: &str) -> Directory {
        Directory::read(url).unwrap().unwrap()
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
        let plain = directory(SENTINELS);
        let noperm = says("NOPERM this user has no permissions to run the 'sentinel|myid' command");
        let rights = RedisNode::RIGHTS_FOR_SENTINELS;
        assert_is_line(
            &why_no_sentinel(&noperm, &plain),
            "its user may not",
            rights,
        );
        let noauth = says("NOAUTH Authentication required.");
        let told = why_no_sentinel(&noauth, &plain);
        assert_is_line(&told, "it wants a password", "?sentinel_password=");
        assert!(!told.contains("before the @"), "{told}");
        let before = directory("redis+sentinel://:hunter2@s1/orders");
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
        let with_one = directory("redis+sentinel://s1/m?sentinel_password=hunter2");
        for (why, directory, wrong, advice) in [
            (
                TLS_SERVER,
                directory(SENTINELS),
                "speaks TLS",
                "?sentinel_tls=yes",
            ),
            (
                HANGS_UP,
                directory(SENTINELS),
                "as a TLS port does",
                "?sentinel_tls=yes",
            ),
            (
                HANGS_UP,
                directory(CLUSTER),
                "as a TLS port does",
                "rediss+cluster://",
            ),
            (
                NO_TLS,
                directory(SENTINELS),
                "does not speak TLS",
                "?sentinel_tls=no",
            ),
            (
                TLS_SERVER,
                directory(CLUSTER),
                "speaks TLS",
                "rediss+cluster://",
            ),
            (
                NO_TLS,
                directory(CLUSTER),
                "does not speak TLS",
                "redis+cluster://",
            ),
            (
                AUTHENTICATION,
                with_one,
                "refuses ?sentinel_user=",
                "or neither",
            ),
            (
                AUTHENTICATION,
                directory(CLUSTER),
                "authentication failed",
                "a user",
            ),
        ] {
            let told = no_informant(why, &directory);
            assert_is_line(&told, wrong, advice);
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn an_address_that_leads_elsewhere_is_told_of_with_what_announces_it() {
        let refused = NotOpened {
            is_unreachable: true,
            ..NotOpened::clear("Connection refused")
        };
        let told = |url: &str, server: &str, why: &NotOpened| {
            let server = Address::of(&server.into_connection_info().unwrap());
            no_server(&directory(url), &server, why)
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
}
