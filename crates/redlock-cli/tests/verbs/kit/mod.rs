//! Servers, and the command that looks at them.

pub(crate) mod http;
mod relay;
mod running;

use std::{
    io::Read,
    ops::{Deref, DerefMut},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use redlock_core::{AcquireOptions, Redlock, Wait, node::RedisNode};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use serde_json::Value;
use tokio::task::JoinSet;

pub(crate) use self::{relay::Relay, running::Running};

/// The longest lease in the namespace of these tests: nodes are quarantined for a little more.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(2);

/// A time limit for answers that a busy machine keeps: half of the lease.
pub(crate) const UNHURRIED: &str = "1s";

/// Servers that end with this value.
pub(crate) struct Nodes {
    servers: ServerSet,
    /// Instead of those of the servers.
    urls: Option<Vec<String>>,
}

/// What the command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// Returns it if it ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// It ended with this code, and printed this.
    #[track_caller]
    pub(crate) fn told(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.contains(words), "{words:?} is not in {self:?}");
    }

    /// It ended with this code, and wrote this to standard error.
    #[track_caller]
    pub(crate) fn complained(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(words), "{words:?} is not in {self:?}");
    }
}

impl Nodes {
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, &ServerOptions::default())
    }

    pub(crate) fn start_with(count: usize, options: &ServerOptions) -> Self {
        let binary = ServerBinary::find().expect("this test needs a server");
        let servers = ServerSet::start(&binary, count, options);
        Self {
            servers: servers.expect("this test needs a server"),
            urls: None,
        }
    }

    /// Starts servers that no client has used yet, and vouches for them.
    pub(crate) async fn blessed(count: usize) -> Self {
        let nodes = Self::start(count);
        nodes.bless().await;
        nodes
    }

    /// Has the command reach the nodes at other addresses.
    pub(crate) fn at(mut self, urls: Vec<String>) -> Self {
        self.urls = Some(urls);
        self
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.urls.clone().unwrap_or_else(|| self.urls())
    }

    pub(crate) async fn bless(&self) {
        let client = self.client().await;
        client.dangerous_bless().await;
        client.close().await;
    }

    /// A client of the namespace.
    pub(crate) async fn client(&self) -> Redlock {
        let builder = Redlock::builder().nodes(self.servers.urls());
        let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await;
        client.expect("the servers have just been started")
    }

    /// Pauses a job that no scheduler has.
    pub(crate) async fn pause_job(&self, namespace: &str, name: &str) {
        let client = self.client().await;
        let paused = redlock_cron::pause(&client, namespace, name).await;
        client.close().await;
        paused.expect("a majority votes");
    }

    /// Has a client of this label wait in line for a key, until what this returns is dropped.
    pub(crate) async fn waits(&self, label: &str, key: &'static str) -> JoinSet<()> {
        let builder = Redlock::builder().nodes(self.servers.urls()).label(label);
        let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await.unwrap();
        let mut waiting = JoinSet::new();
        waiting.spawn(async move {
            let patient = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(300)));
            drop(client.acquire_with(key, patient).await);
        });
        waiting
    }

    /// A command's answer from one node, as text.
    pub(crate) fn ask(&self, node: usize, command: &[&str]) -> String {
        let reply = self.servers[node].command(command);
        let reply = reply.unwrap_or_else(|error| panic!("node {node}, {}: {error}", command[0]));
        match (reply.as_integer(), reply.as_text()) {
            (Some(number), _) => number.to_string(),
            (_, Some(text)) => text.to_owned(),
            _ => String::new(),
        }
    }

    /// Makes a user with the least rights that a client needs, and returns the node's URL for it.
    pub(crate) fn with_least_rights(&self, node: usize) -> String {
        self.with_user(node, &format!("~{{redlock}}:* {}", RedisNode::RIGHTS))
    }

    /// Makes a user with these rights, and returns the node's URL for it.
    pub(crate) fn with_user(&self, node: usize, rights: &str) -> String {
        let user = format!("ACL SETUSER lock on >pw -@all {rights}");
        self.ask(node, &user.split(' ').collect::<Vec<_>>());
        self[node].url().replace("redis://", "redis://lock:pw@")
    }

    pub(crate) fn set(&self, node: usize, name: &str, value: &str) {
        self.ask(node, &["CONFIG", "SET", name, value]);
    }

    /// The keys of all nodes.
    pub(crate) fn keys(&self) -> Vec<String> {
        let keys = |node: usize| {
            let reply = self.servers[node].command(&["KEYS", "*"]).unwrap();
            let keys = reply.as_array().unwrap_or_default().to_vec();
            let name = move |key: redlock_sandbox::Value| {
                format!("{node}: {}", key.as_text().unwrap_or_default())
            };
            keys.into_iter().map(name).collect::<Vec<_>>()
        };
        let mut keys: Vec<_> = (0..self.len()).flat_map(keys).collect();
        keys.sort();
        keys
    }

    /// The command, ready to be run on these nodes.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = redlock(arguments);
        command
            .env("REDLOCK_NODES", self.addresses().join(","))
            .env("REDLOCK_TTL", format!("{}ms", MAX_TTL.as_millis()))
            .env("REDLOCK_MAX_TTL", format!("{}ms", MAX_TTL.as_millis()));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        run(&mut self.command(arguments))
    }

    /// What the doctor says, as JSON.
    ///
    /// It warns of nodes that take half of the time limit: a busy machine must not be found slow.
    pub(crate) fn doctor(&self, arguments: &[&str]) -> Examined {
        let mut command = self.command(&[&["doctor", "--json"], arguments].concat());
        Examined::of(&run(command.env("REDLOCK_NODE_TIMEOUT", UNHURRIED)))
    }
}

/// A file of settings, which is removed with this value.
pub(crate) struct ConfigFile(tempfile::NamedTempFile);

impl ConfigFile {
    pub(crate) fn of(text: &str) -> Self {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Self(file)
    }

    /// For `--config`.
    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

/// What the doctor said.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) code: i32,
    pub(crate) json: Value,
}

impl Examined {
    pub(crate) fn of(done: &Done) -> Self {
        let json = serde_json::from_str(&done.out);
        Self {
            code: done.code,
            json: json.unwrap_or_else(|error| panic!("{error}: {done:?}")),
        }
    }

    /// Returns it if the doctor ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// The findings of a check: `LEVEL NODE: what was found -> what to do`.
    pub(crate) fn found(&self, check: &str) -> Vec<String> {
        let findings = self.json["findings"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or("all").to_owned();
        let of_check = findings.filter(|finding| finding["check"] == check);
        of_check
            .map(|finding| {
                let [level, node] = ["level", "node"].map(|name| text(&finding[name]));
                let [found, advice] = ["found", "advice"].map(|name| text(&finding[name]));
                assert!(!advice.is_empty() && !advice.contains('\n'), "{finding}");
                format!("{level} {node}: {found} -> {advice}")
            })
            .collect()
    }

    /// The one finding of a check, which must have all these words; ` … ` is between them.
    #[track_caller]
    pub(crate) fn one(&self, check: &str, words: &str) {
        let found = self.found(check);
        let [line] = &*found else {
            panic!("{check}: {found:?} in {:#}", self.json);
        };
        for word in words.split(" … ") {
            assert!(line.contains(word), "{word:?} is not in {line:?}");
        }
    }
}

impl Deref for Nodes {
    type Target = ServerSet;

    fn deref(&self) -> &ServerSet {
        &self.servers
    }
}

impl DerefMut for Nodes {
    fn deref_mut(&mut self) -> &mut ServerSet {
        &mut self.servers
    }
}

/// A line for a shell at a terminal of its own, whose keyboard and screen are pipes; in it, `$REDLOCK` is the command.
pub(crate) fn at_terminal(line: &str, nodes: &Nodes) -> Command {
    let mut terminal = Command::new("env");
    terminal
        // The keys of a terminal are ignored in a program that a shell without job control has started in the background.
        .args(["--default-signal=INT,QUIT", "script"])
        .args(["-qec", line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    reaches(&mut terminal, nodes);
    terminal
}

/// Has another program find the nodes, and the command as `$REDLOCK`.
pub(crate) fn reaches(program: &mut Command, nodes: &Nodes) {
    for (name, value) in nodes.command(&[]).get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    program.env("REDLOCK", env!("CARGO_BIN_EXE_redlock"));
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    await_looking_each(Duration::from_millis(20), what, is_so);
}

/// The same, for what must be noticed as soon as it is so.
pub(crate) fn eventually_at_once(what: &str, is_so: impl FnMut() -> bool) {
    await_looking_each(Duration::ZERO, what, is_so);
}

#[expect(clippy::disallowed_methods, reason = "the patience of a test")]
fn await_looking_each(pause: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not so: {what}");
        thread::sleep(pause);
    }
}

/// The command, in an environment that says nothing to it.
pub(crate) fn redlock(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
    for (name, _) in std::env::vars() {
        if name.starts_with("REDLOCK_") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .env("COLUMNS", "80")
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(command: &mut Command) -> Done {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command can be started");
    Done {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// Reads what a program at a terminal shows until these words are there, and returns it.
pub(crate) fn screen(terminal: &mut Child, words: &str) -> String {
    let mut said = String::new();
    let out = terminal.stdout.as_mut().unwrap();
    while !said.contains(words) {
        let mut some = [0; 4_096];
        let length = out.read(&mut some).unwrap();
        assert!(length > 0, "it ended before {words:?}: {said}");
        said += &String::from_utf8_lossy(&some[..length]);
    }
    said
}
