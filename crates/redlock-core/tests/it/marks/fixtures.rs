//! A master, a session with it, and what to ask.

use std::{sync::Arc, time::Duration};

use redlock_core::node::{Answer, Keyspace, Node, RedisNode, Reply, Request, Session};
use redlock_proto::{Lock, LockMode, MarkState, NodeKey, NodeVerb, OwnerId, Quarantine, Verb};
use redlock_sandbox::{Server, ServerBinary, ServerOptions, Value};

pub(crate) const TTL: Duration = Duration::from_secs(20);

/// A master, and a session with it.
pub(crate) struct Master {
    pub(crate) server: Server,
    pub(crate) session: Box<dyn Session>,
}

impl Master {
    pub(crate) async fn start(options: ServerOptions) -> Self {
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let server = Server::start(&binary, options).unwrap();
        let session = connect(&server.url()).await;
        Self { server, session }
    }

    /// Returns a master that was opened for votes.
    pub(crate) async fn opened() -> Self {
        let mut master = Self::start(debuggable()).await;
        master.open().await;
        master
    }

    /// Tells the master to vote, as an operator's blessing does.
    pub(crate) async fn open(&mut self) {
        let state = self.inspect().await;
        let (MarkState::Quarantined { since, .. } | MarkState::Aged { since }) = state else {
            panic!("it need not be told: {state:?}");
        };
        let open = Request::Node(NodeVerb::Open {
            floor: 0,
            since,
            horizon: None,
        });
        assert_eq!(self.call(&[open]).await.replies, [Ok(Reply::Done)]);
        assert_eq!(self.inspect().await, MarkState::Voting);
    }

    /// Connects again.
    pub(crate) async fn reconnect(&mut self) {
        self.session = connect(&self.server.url()).await;
    }

    pub(crate) async fn call(&mut self, requests: &[Request]) -> Answer {
        let answer = self.session.call(&keyspace(), requests).await;
        answer.expect("the call as a whole is answered")
    }

    /// Has it inspected, as clients do when they connect and every few seconds; returns where it stands.
    pub(crate) async fn inspect(&mut self) -> MarkState {
        let answer = self.call(&[Request::Node(NodeVerb::Inspect)]).await;
        assert!(matches!(answer.replies[..], [Ok(Reply::ServerInfo(_))]));
        answer.standing.unwrap().state
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Value {
        self.server
            .command(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Returns what `INFO` says in this section.
    pub(crate) fn info(&self, section: &str) -> String {
        let info = self.command(&["INFO", section]);
        info.as_text().unwrap().to_owned()
    }

    pub(crate) fn exists(&self, key: &str) -> bool {
        self.command(&["EXISTS", &format!("{{marks}}:lock:{key}")])
            .as_integer()
            == Some(1)
    }

    /// Waits until `INFO` says so in this section.
    pub(crate) async fn until(&self, section: &str, words: &str) {
        let said = async {
            while !self.info(section).contains(words) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(TTL, said).await;
        assert!(waited.is_ok(), "{}", self.info(section));
    }
}

/// Options of a server that lets itself be debugged, and copied without delay.
pub(crate) fn debuggable() -> ServerOptions {
    ServerOptions::default()
        .argument("--enable-debug-command")
        .argument("local")
        .argument("--repl-diskless-sync-delay")
        .argument("0")
}

pub(crate) async fn connect(url: &str) -> Box<dyn Session> {
    RedisNode::at(url).unwrap().connect().await.unwrap()
}

pub(crate) fn keyspace() -> Arc<Keyspace> {
    let quarantine = Quarantine::new(3 * TTL, 0.01);
    Arc::new(Keyspace::new("{marks}", quarantine))
}

/// Returns a request about a key of the keyspace.
pub(crate) fn request(verb: Verb, key: &str, owner: u8) -> Request {
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: NodeKey::from(format!("{{marks}}:lock:{key}")).into(),
            owner: OwnerId::from_random([owner; 16]),
        }
        .into(),
    }
}

/// Returns an acquire with the greatest proposal so far, as long as each is asked for once.
pub(crate) fn acquire(proposal: u64) -> Verb {
    Verb::Acquire {
        ttl: TTL,
        proposal,
        block: 1,
        wish: None,
        line: None,
    }
}

pub(crate) fn is_quarantined(state: &MarkState) -> bool {
    matches!(state, MarkState::Quarantined { .. })
}
