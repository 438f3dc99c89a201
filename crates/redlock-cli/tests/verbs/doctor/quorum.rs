use std::time::Duration;

use redlock_core::Redlock;

use crate::kit::{MAX_TTL, Nodes};

#[tokio::test]
async fn a_node_that_is_gone_is_a_failure_and_a_majority_that_is_gone_is_no_quorum() {
    let mut nodes = Nodes::blessed(5).await;
    let address = nodes[1].address().to_string();
    nodes[1].kill().unwrap();
    let one = nodes.doctor(&[]);
    assert_eq!(one.code, 2);
    one.one("reachable", &format!("failure … {address} … refused"));
    assert_eq!(one.json["status"], "failure");
    assert!(one.found("margin").is_empty());

    nodes[2].kill().unwrap();
    let two = nodes.doctor(&[]);
    assert_eq!(two.code, 2);
    two.one("margin", "warning … 3 of 5 nodes vote … restart nothing");

    nodes[3].freeze().unwrap();
    let three = nodes.doctor(&["--connect-timeout", "300ms"]);
    assert_eq!(three.code, 3);
    assert_eq!(three.json["status"], "no_quorum");
    three.one("quorum", "0 of 5 nodes vote, and 3 are needed");
    assert_eq!(three.found("reachable").len(), 3, "{three:?}");
    // Nothing has to be changed about those that are up.
    let alone = three.found("alone");
    let is_well = |found: &String| {
        found.starts_with("note") && found.ends_with("-> it is well: bring the others back")
    };
    assert!(alone.len() == 2 && alone.iter().all(is_well), "{alone:?}");
    assert!(three.found("clock").is_empty(), "{three:?}");
    nodes[3].thaw().unwrap();
}

#[tokio::test]
async fn a_node_that_restarted_without_its_keys_is_quarantined_and_most_of_them_are_too_many() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].restart().unwrap();
    let one = nodes.doctor(&["--strict"]);
    one.one(
        "quarantine",
        "warning … may have forgotten leases … redlock watch",
    );
    assert_eq!(one.code, 1, "{one:?}");
    assert!(one.found("restarts").is_empty());

    nodes[1].restart().unwrap();
    let two = nodes.doctor(&[]);
    assert_eq!(two.code, 3);
    two.one("restarts", "more than a minority at once … redlock roll");
}

#[tokio::test]
async fn a_first_start_is_no_restart_of_too_many_nodes() {
    let examined = Nodes::start(3).doctor(&[]);
    assert_eq!(examined.code, 3);
    examined.one(
        "restarts",
        "warning … a first start, or all restarted … if they are new, redlock bless",
    );
}

#[tokio::test]
async fn a_set_that_is_too_small_or_even_is_told_so() {
    let one = Nodes::blessed(1).await.doctor(&["--strict"]);
    one.one("count", "one node is as good as one server");
    assert_eq!(one.code, 1);
    let four = Nodes::blessed(4).await.doctor(&[]);
    four.one("count", "even number … three or five");
    four.one("failure-domains", "note … 4 nodes are on this machine");
    assert_eq!(four.code, 0);
}

#[tokio::test]
async fn clients_that_disagree_about_the_longest_lease_are_a_failure() {
    let nodes = Nodes::start(3);
    let builder = Redlock::builder().nodes([nodes[2].url()]).ttl(MAX_TTL);
    let longer = builder
        .max_ttl(Duration::from_secs(60))
        .build()
        .await
        .unwrap();
    longer.dangerous_bless().await;
    longer.close().await;
    let builder = Redlock::builder()
        .nodes(nodes.urls())
        .ttl(MAX_TTL)
        .max_ttl(MAX_TTL);
    let client = builder.build().await.unwrap();
    client.dangerous_bless().await;
    client.close().await;
    let examined = nodes.doctor(&[]);
    examined.one(
        "policy",
        "failure … REDLOCK_MAX_TTL) is 60s … is 2s … give this client their value",
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn nodes_that_are_configured_in_different_ways_are_told_of() {
    let nodes = Nodes::blessed(3).await;
    nodes.set(1, "maxmemory", "200mb");
    let examined = nodes.doctor(&["--strict"]);
    examined.one("configuration", "differ in maxmemory … 209715200");
    assert_eq!(examined.code, 1);
}
