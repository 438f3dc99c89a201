use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use redlock_sandbox::ServerOptions;

use crate::kit::{Examined, Nodes, Relay, eventually, run};

#[tokio::test]
async fn connections_that_run_out_are_told_of() {
    let options = ServerOptions::default()
        .argument("--maxclients")
        .argument("20");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    let address = nodes[0].address();
    // An earlier connection, over which the server answers while it accepts no further ones.
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
        "warning … of at most 20 connections … raise maxclients",
    );
    examined.one("rejected-clients", "warning … connections away");
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
    examined.one("lease-budget", "warning … of a lease of 400 ms … raise ttl");
}

#[tokio::test]
async fn a_command_that_kept_a_node_busy_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    let busy = "local n = 0 while n < 20000000 do n = n + 1 end return n";
    nodes.ask(1, &["EVAL", busy, "0"]);
    let examined = nodes.doctor(&["--strict", "--node-timeout", "100ms"]);
    examined.one(
        "slow-commands",
        &format!("warning … {} … SLOWLOG GET", nodes[1].address()),
    );
    assert!(
        !examined.json.to_string().contains("while"),
        "what it was stays there"
    );
}

#[tokio::test]
async fn a_node_that_stood_still_to_fork_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    let forked = || -> u64 {
        let info = nodes.ask(0, &["INFO", "stats"]);
        let took = info
            .lines()
            .find_map(|line| line.strip_prefix("latest_fork_usec:"));
        took.unwrap().trim().parse().unwrap()
    };
    // The more memory there is, the longer it takes.
    for part in 0..40 {
        nodes.ask(0, &["SETRANGE", &format!("much:{part}"), "20000000", "x"]);
        nodes.ask(0, &["BGSAVE"]);
        eventually("it has saved", || {
            let info = nodes.ask(0, &["INFO", "persistence"]);
            info.contains("rdb_bgsave_in_progress:0")
        });
        if forked() > 1_000 {
            break;
        }
    }
    let node = nodes[0].address().to_string();
    let examined = nodes.doctor(&["--node-timeout", "1ms"]);
    let found = examined.found("fork");
    let of_node = found.iter().find(|line| line.contains(&node));
    let line = of_node.unwrap_or_else(|| panic!("{found:?} after {} us", forked()));
    assert!(
        line.contains("when it forked last") && line.contains("save \"\""),
        "{line}"
    );
}

/// A server that loads its data again, slowly, and answers meanwhile that it does.
#[tokio::test]
async fn a_node_that_loads_its_data_is_told_of() {
    let options = ServerOptions::default()
        .argument("--enable-debug-command")
        .argument("yes");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    let fill = "for n = 1, 2000 do redis.call('SET', 'key:' .. n, string.rep('x', 1000)) end";
    nodes.ask(1, &["EVAL", fill, "0"]);
    // The time for each key, in microseconds.
    nodes.set(1, "key-load-delay", "20000");
    nodes.set(1, "loading-process-events-interval-bytes", "1024");
    let mut loads = TcpStream::connect(nodes[1].address()).unwrap();
    loads.write_all(b"DEBUG RELOAD\r\n").unwrap();
    eventually("it loads", || {
        let info = nodes.ask(1, &["INFO", "persistence"]);
        info.contains("\nloading:1")
    });
    let examined = nodes.doctor(&[]);
    let node = nodes[1].address().to_string();
    examined.one(
        "loading",
        &format!("failure … {node} … is loading its data"),
    );
    assert_eq!((examined.code, &examined.json["votes"]), (2, &2.into()));
}
