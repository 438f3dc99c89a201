//! The fleet of `cargo xtask rehearse` can fail: its replicas notice what must not happen.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use redlock_sandbox::Process;
use redlock_tests::{Nodes, builder};

use crate::readme::post;

#[tokio::test]
async fn a_replica_notices_a_handler_beside_its_own_and_a_token_that_does_not_grow() {
    let nodes = Nodes::start(3);
    let max_ttl = Duration::from_secs(10);
    let vouching = builder(nodes.urls(), max_ttl).max_ttl(max_ttl);
    vouching.build().await.unwrap().dangerous_bless().await;
    let orders = tempfile::tempdir().unwrap();
    let mut command = Process::command(env!("CARGO_BIN_EXE_redlock-test-replica"));
    command
        .arg(orders.path())
        .env("REDLOCK_NODES", nodes.urls().join(","))
        .env("REDLOCK_MAX_TTL", "10s")
        .stdout(Stdio::piped());
    let mut replica = Process::spawn(command).unwrap();
    let mut address = String::new();
    let output = replica.take_stdout().unwrap();
    BufReader::new(output).read_line(&mut address).unwrap();
    let pay = || {
        let answer = post(address.trim(), "orders/7/pay");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    };
    assert_eq!(pay(), "paid");
    assert_eq!(pay(), "paid");

    let order = orders.path().join("7");
    let beside = File::open(&order).unwrap();
    beside.lock().unwrap();
    assert_eq!(pay(), "overlap");
    drop(beside);
    assert_eq!(pay(), "paid");

    fs::write(&order, u64::MAX.to_string()).unwrap();
    assert_eq!(pay(), "overlap");
}
