//! `bless`: a user vouches for nodes.

use std::io::{Read, Write};

use crate::kit::{Nodes, at_terminal, screen};

#[tokio::test]
async fn nodes_are_blessed_only_by_somebody_who_says_so() {
    let nodes = Nodes::start(3);
    let done = nodes.run(&["bless"]).ended(2);
    assert!(
        done.out.contains("0 keys") && done.out.contains("To bless is to vouch"),
        "{done:?}"
    );
    assert_eq!(nodes.run(&["ready", "1"]).code, 1);
    nodes.run(&["bless", "--yes"]).ended(0);
    assert_eq!(nodes.run(&["ready", "1"]).code, 0);
    let done = nodes.run(&["bless", "--yes"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("nothing to bless"), "{done:?}");
}

#[tokio::test]
async fn a_blessing_of_nodes_beside_voting_ones_is_warned_of() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].restart().unwrap();
    let done = nodes.run(&["bless"]);
    let against = "warn 2 nodes vote already: ";
    assert!(done.out.contains(against), "{done:?}");
    assert_eq!((done.code, nodes.run(&["ready", "1"]).code), (2, 1));
}

#[tokio::test]
async fn a_node_that_restarts_while_somebody_thinks_is_not_blessed_unseen() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].restart().unwrap();
    let mut bless = at_terminal("\"$REDLOCK\" bless", &nodes).spawn().unwrap();
    let mut said = screen(&mut bless, "Type yes");
    // A node that is in quarantine already, and it was shown so.
    nodes[0].restart().unwrap();
    let mut keyboard = bless.stdin.take().unwrap();
    keyboard.write_all(b"yes\r").unwrap();
    let mut out = bless.stdout.take().unwrap();
    out.read_to_string(&mut said).unwrap();
    assert_eq!(bless.wait().unwrap().code(), Some(2), "{said}");
    let node = nodes[0].address().to_string();
    assert!(
        said.contains("nothing was done") && said.contains(&format!("{node} is not as it was")),
        "{said}"
    );
    assert_eq!(nodes.run(&["ready", "1"]).code, 1);
}

#[tokio::test]
async fn nodes_that_cannot_be_reached_are_named_where_none_waits_for_a_blessing() {
    let mut nodes = Nodes::blessed(3).await;
    for node in 0..2 {
        nodes[node].kill().unwrap();
    }
    let done = nodes.run(&["bless", "--yes"]);
    done.told(3, "nothing to bless");
    for node in 0..2 {
        let line = format!("FAIL {}: cannot be reached: ", nodes[node].address());
        assert!(done.out.contains(&line), "{done:?}");
    }
    nodes[1].restart().unwrap();
    nodes[0].restart().unwrap();
    let done = nodes.run(&["bless"]);
    assert!(done.out.contains("warn 1 node votes already: "), "{done:?}");
}
