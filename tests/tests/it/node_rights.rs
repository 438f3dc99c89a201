//! A node whose user may not do what is needed is named with the rights that it needs, and the others go on.

use std::{error::Error, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    AcquireOptions, NodeAnswer, NotAVote, RedlockBuilder, Renewal, Wait, node::RedisNode,
};
use redlock_tests::{Nodes, builder, now, within};

const TTL: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(10);

fn rights() -> Vec<&'static str> {
    RedisNode::RIGHTS.split_whitespace().collect()
}

/// Gives a node a user of this name, with these rights to the keys of a namespace; returns the URL.
fn user(nodes: &Nodes, node: usize, name: &str, namespace: &str, rights: &[&str]) -> String {
    let keys = format!("~{{{namespace}}}:*");
    let mut command = vec!["ACL", "SETUSER", name, "on", ">sesame", &keys, "-@all"];
    command.extend(rights);
    nodes.ask(node, &command);
    format!("redis://{name}:sesame@{}", nodes[node].address())
}

/// A client of one node, in a namespace of its own.
fn lone(url: &str, namespace: &str) -> RedlockBuilder {
    builder([url], TTL)
        .max_ttl(TTL)
        .node_timeout(TTL / 2)
        .namespace(namespace)
}

/// All that a client does to a node: connect, wait until it votes, acquire, be refused, extend and release.
async fn everything(url: &str, namespace: &str) -> Result<(), Box<dyn Error>> {
    let redlock = lone(url, namespace).build().await?;
    let until = now() + TTL * 3;
    loop {
        let report = redlock.node_reports().await.swap_remove(0);
        match &report.answer {
            NodeAnswer::Reachable => break,
            NodeAnswer::NotAVote {
                reason: NotAVote::Quarantined { .. } | NotAVote::Stuck { .. },
            } if now() < until => tokio::time::sleep(TTL / 50).await,
            _ => return Err(report.to_string().into()),
        }
    }
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let manual = manual.wait(Wait::Never);
    let guard = redlock.acquire_with("a", manual).await?;
    let other = lone(url, namespace).build().await?;
    let refused = other.try_acquire("a").await.unwrap_err();
    if !refused.to_string().contains("held by ") {
        return Err(refused.into());
    }
    guard.extend().await?;
    Ok(guard.release().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_is_needed_and_all_of_them_suffice() {
    let nodes = Nodes::start(1);
    let rights = rights();
    let url = user(&nodes, 0, "all", "all", &rights);
    everything(&url, "all").await.unwrap();

    let without = rights.iter().map(|missing| {
        let name = &missing[1..];
        let others: Vec<&str> = rights.iter().copied().filter(|r| r != missing).collect();
        let url = user(&nodes, 0, name, name, &others);
        async move {
            let error = everything(&url, name).await.expect_err(missing).to_string();
            println!("without {missing}: {}", error.replace('\n', " "));
            assert!(
                error.contains(RedisNode::RIGHTS),
                "without {missing}: {error}"
            );
        }
    });
    within("everything", SOON, join_all(without)).await;

    let url = user(&nodes, 0, "stranger", "elsewhere", &rights);
    let error = everything(&url, "here")
        .await
        .expect_err("the keys are not its");
    assert!(
        error.to_string().contains("keys of the namespace"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_user_lacks_a_right_costs_its_vote_only() {
    let nodes = Nodes::start(3);
    let mut lacking = rights();
    lacking.retain(|right| *right != "+zadd");
    let urls = [
        nodes[0].url(),
        user(&nodes, 1, "all", "redlock", &rights()),
        user(&nodes, 2, "lacking", "redlock", &lacking),
    ];
    // Each acquire needs both of the others, on a machine that may be busy.
    let redlock = builder(urls, TTL).node_timeout(TTL / 2).build().await;
    let redlock = redlock.unwrap();
    let reports = redlock.dangerous_bless().await;
    for _ in 0..20 {
        let guard = redlock.try_acquire("a").await.unwrap();
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
    }
    // It could not be told the floor of its counters, so it does not vote.
    let said = reports[2].to_string();
    assert!(said.contains(RedisNode::RIGHTS), "{said}");
    nodes.become_empty(SOON).await;
}
