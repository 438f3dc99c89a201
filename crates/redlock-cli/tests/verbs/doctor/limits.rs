use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use redlock_sandbox::ServerOptions;

use crate::kit::{Examined, Nodes, Relay, run};

#[tokio::test]
async fn connections_that_run_out_are_told_of() {
    let options = ServerOptions::default()
        .argument("--maxclients")
        .argument("20");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    let address = nodes[0].address();
    // A connection from before, over which the server can be asked while it takes no more.
    let mut before = TcpStream::connect(address).unwrap();
    let too_many: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    loop {
        before.write_all(b"INFO stats\r\n").unwrap();
        let mut answer = vec![0; 64 * 1_024];
        let length = before.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]);
        if answer.contains("rejected_connections:") && !answer.contains("rejected_connections:0\r")
        {
            break;
        }
        assert!(length > 0);
    }
    drop((too_many, before));
    // The client and the doctor have one connection each.
    let some: Vec<_> = (0..16)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let examined = nodes.doctor(&[]);
    examined.one(
        "clients",
        &["warning", "of at most 20 connections", "raise maxclients"],
    );
    examined.one("rejected-clients", &["warning", "connections away"]);
    assert_eq!(examined.code, 0, "{examined:?}");
    drop(some);
}

#[tokio::test]
async fn slow_nodes_are_told_of_and_so_is_a_lease_of_which_a_quarter_is_over_when_it_is_won() {
    let nodes = Nodes::blessed(3).await;
    let mut slow = Vec::new();
    for node in 0..3 {
        slow.push(Relay::delaying(nodes[node].address(), Duration::from_millis(130)).url());
    }
    let nodes = nodes.at(slow);
    let mut command = nodes.command(&["doctor", "--json", "--node-timeout", "200ms"]);
    let examined = Examined::of(&run(command.env("REDLOCK_TTL", "400ms")));
    let latency = examined.found("latency");
    assert_eq!(latency.len(), 3, "{examined:?}");
    assert!(
        latency[0].contains("its time limit is 200 ms"),
        "{latency:?}"
    );
    examined.one(
        "lease-budget",
        &["warning", "of a lease of 400 ms", "raise ttl"],
    );
}

#[tokio::test]
async fn a_command_that_kept_a_node_busy_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    let busy = "local n = 0 while n < 60000000 do n = n + 1 end return n";
    nodes.ask(1, &["EVAL", busy, "0"]);
    let examined = nodes.doctor(&["--strict", "--node-timeout", "100ms"]);
    examined.one(
        "slow-commands",
        &["warning", &nodes[1].address().to_string(), "SLOWLOG GET"],
    );
    assert!(
        !examined.json.to_string().contains("while"),
        "what it was stays there"
    );
}

#[tokio::test]
async fn a_node_that_stands_still_to_fork_and_one_that_loads_are_told_of() {
    let nodes = Nodes::blessed(3).await;
    nodes.ask(0, &["BGSAVE"]);
    let info = nodes.ask(0, &["INFO", "stats"]);
    let fork = info
        .lines()
        .find(|line| line.starts_with("latest_fork_usec:"));
    let fork = fork.unwrap().trim();
    let longer = fork.replace(|c: char| c.is_ascii_digit(), "9");
    let forks = Relay::replacing(nodes[0].address(), fork, &longer);
    let loads = Relay::replacing(nodes[1].address(), "\nloading:0", "\nloading:1");
    let urls = vec![forks.url(), loads.url(), nodes[2].url()];
    let nodes = nodes.at(urls);
    // A fork took some hundred microseconds at the least.
    let examined = nodes.doctor(&["--node-timeout", "1ms"]);
    examined.one("fork", &["warning", "when it forked last", "save \"\""]);
    examined.one("loading", &["failure", "is loading its data"]);
}
