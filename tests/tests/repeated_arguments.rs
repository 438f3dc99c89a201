//! Servers and proxies that put what they were asked into their answers: a resource's name, the owner value, which is
//! the capability to release, or a password.
//!
//! Nothing of it is in an error, a report or the log.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fmt::{Debug, Display},
    sync::LazyLock,
    time::Duration,
};

use redlock_core::{NodeAnswer, Redlock};
use redlock_sandbox::ServerOptions;
use redlock_tests::{Logs, Nodes, Relay, Repeat, builder, eventually, within};

const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(10);
const USER: &str = "ALIBABA";
const PASSWORD: &str = "OPENSESAME";
const NAMESPACE: &str = "treasure";
/// In capitals, as the codes of errors are.
const KEYS: [&str; 2] = ["FORTYTHIEVES", "CAVE"];

static LOGS: LazyLock<Logs> = LazyLock::new(Logs::capture);

/// What users get to read.
#[derive(Default)]
struct Printed(String);

impl Printed {
    fn add(&mut self, what: &(impl Debug + Display)) {
        self.0 += &format!("{what}\n{what:?}\n");
    }

    async fn add_reports(&mut self, redlock: &Redlock) {
        for report in redlock.node_reports().await {
            self.0 += &format!("{report}\n{report:?}\n");
        }
    }

    /// Neither it nor the log has any of these words, nor anything as long as an owner value.
    fn has_none(&self, secrets: &[String]) {
        let all = format!("{}{}", self.0, LOGS.text());
        for secret in secrets {
            let found = all.lines().find(|line| line.contains(secret.as_str()));
            assert!(found.is_none(), "{secret} is printed: {found:?}");
        }
        let digits = |c: char| !c.is_ascii_hexdigit();
        let found = all.split(digits).find(|digits| digits.len() >= 32);
        assert!(found.is_none(), "an owner value is printed: {found:?}");
    }
}

fn secrets(owner: Option<String>) -> Vec<String> {
    let words = [USER, PASSWORD, KEYS[0], KEYS[1]];
    words.map(str::to_owned).into_iter().chain(owner).collect()
}

/// All that a client may be told of a node that repeats what it is asked, from some moment on.
async fn told(nodes: &Nodes, relay: &Relay) -> (Printed, Vec<String>) {
    let mut printed = Printed::default();
    let url = relay
        .url()
        .replace("://", &format!("://{USER}:{PASSWORD}@"));
    let described = || builder([&url], TTL).namespace(NAMESPACE);
    let redlock = described().build().await.unwrap();
    redlock.dangerous_bless().await;
    let guard = redlock.acquire(KEYS[0]).await.unwrap();
    let owner = nodes.ask(0, &["GET", &format!("{{{NAMESPACE}}}:lock:{}", KEYS[0])]);
    // Its label is public.
    let owner = owner.split(' ').next().unwrap_or_default().to_owned();
    assert_eq!(owner.len(), 32, "{owner}");

    relay.repeat(true);
    printed.add(&guard.extend().await.unwrap_err());
    printed.add(&redlock.try_acquire(KEYS[1]).await.unwrap_err());
    printed.add_reports(&redlock).await;
    printed.add(&guard.release().await.unwrap_err());
    // Again with a new connection, and with a new client.
    relay.hang_up();
    let down = async {
        loop {
            let report = redlock.node_reports().await.swap_remove(0);
            if matches!(report.answer, NodeAnswer::NotExecuted { .. }) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the node is not reachable", SOON, down).await;
    printed.add(&redlock.try_acquire(KEYS[1]).await.unwrap_err());
    printed.add_reports(&redlock).await;
    printed.add(&described().build().await.unwrap_err());
    let without_a_password = builder([relay.url()], TTL).namespace(NAMESPACE);
    printed.add(&without_a_password.build().await.unwrap_err());
    let in_three = url.clone() + "?protocol=resp3";
    printed.add(&builder([in_three], TTL).build().await.unwrap_err());
    (printed, secrets(Some(owner)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_repeats_the_request_is_not_passed_on() {
    LazyLock::force(&LOGS);
    let forms: [(&str, Repeat); 9] = [
        ("as Redis 7 does", |a| {
            let rest: Vec<_> = a[1..].iter().map(|a| format!("'{a}'")).collect();
            let rest = rest.join(" ");
            format!(
                "-ERR unknown command '{}', with args beginning with: {rest}\r\n",
                a[0]
            )
        }),
        ("as Redis 6 does", |a| {
            let rest: Vec<_> = a[1..].iter().map(|a| format!("`{a}`, ")).collect();
            let rest = rest.concat();
            format!(
                "-ERR unknown command `{}`, with args beginning with: {rest}\r\n",
                a[0]
            )
        }),
        ("without quotes", |a| {
            format!("-ERR invalid request: {}\r\n", a.join(" "))
        }),
        ("without a code", |a| format!("-{}\r\n", a.join(" "))),
        ("in place of the code", |a| {
            let words = a.iter().rev().cloned().collect::<Vec<_>>();
            format!("-{}\r\n", words.join(" "))
        }),
        ("under a code that means something", |a| {
            format!("-NOPERM {}\r\n", a.join(" "))
        }),
        ("as a status", |a| format!("+{}\r\n", a.join(" "))),
        ("as an error within the script's answer", |a| {
            let error = format!("OOM {} (SET)", a.join(" "));
            let error = format!("${}\r\n{error}\r\n", error.len());
            format!("*6\r\n{error}:0\r\n:0\r\n:0\r\n{error}:0\r\n")
        }),
        ("in another protocol", |a| {
            format!("HTTP/1.1 400 Bad Request\r\n\r\n{}\r\n", a.join(" "))
        }),
    ];
    for (name, repeat) in forms {
        println!("{name}");
        let nodes = Nodes::start(1);
        let password = format!(">{PASSWORD}");
        nodes.ask(0, &["ACL", "SETUSER", USER, "on", &password, "~*", "+@all"]);
        let relay = Relay::repeating(nodes[0].address(), repeat).await.unwrap();
        let (printed, secrets) = told(&nodes, &relay).await;
        println!("{}", printed.0);
        printed.has_none(&secrets);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_command_that_is_needed_is_told_to_be_one() {
    LazyLock::force(&LOGS);
    for missing in ["EVALSHA", "EVAL"] {
        // With SCRIPT LOAD, the client does not need EVAL.
        let nodes = ["SCRIPT", missing].into_iter();
        let options = nodes.fold(ServerOptions::default(), |options, command| {
            options
                .argument("--rename-command")
                .argument(command)
                .argument("")
        });
        let nodes = Nodes::start_with(1, &options);
        let redlock = builder(nodes.urls(), TTL)
            .namespace(NAMESPACE)
            .connect_lazily();
        let redlock = redlock.build().await.unwrap();
        let mut printed = Printed::default();
        let says = |text: &String| text.contains(&format!("unknown command ({missing})"));
        let asked = async {
            while !says(&printed.0) {
                printed.add(&redlock.try_acquire(KEYS[0]).await.unwrap_err());
                printed.add_reports(&redlock).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within("the command is named", SOON, asked).await;
        printed.has_none(&secrets(None));
        if missing == "EVAL" {
            // Without it the node cannot even be asked what it is.
            eventually("it is logged", SOON, || LOGS.text(), says).await;
        }
    }
}
