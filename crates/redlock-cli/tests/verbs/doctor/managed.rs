use crate::kit::{Nodes, Relay};

/// Stands in for an Active-Active database: a server that says one field of its more.
#[tokio::test]
async fn a_part_of_an_active_active_database_is_a_failure() {
    let nodes = Nodes::blessed(3).await;
    let field = ["total_system_memory:", "crdt_config_version:"];
    let part = Relay::replacing(nodes[1].address(), field[0], field[1]);
    let mut urls = nodes.urls();
    urls[1] = part.url();
    let examined = nodes.at(urls).doctor(&[]);
    examined.one("managed", "failure … Active-Active … read docs/managed.md");
    assert_eq!(examined.code, 2, "{examined:?}");
}
