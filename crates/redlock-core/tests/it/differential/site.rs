//! The real side: a server whose clock the test sets, and one session.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use redlock_core::node::{CallResult, Keyspace, Node, RedisNode, Request, RunId, Session};
use redlock_sandbox::{Persistence, Server, ServerBinary, ServerOptions, Value};

use crate::differential::messages::{Listener, Messages};

pub(crate) struct Site {
    server: Server,
    session: Box<dyn Session>,
    listener: Listener,
    /// Whether what is plain is done by transactions.
    pub(crate) transacts: bool,
}

impl Site {
    pub(crate) async fn start(persistence: Persistence, transacts: bool) -> Self {
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let options = ServerOptions::default()
            .persistence(persistence)
            // A killed process loses nothing that it has handed to the system.
            .argument("--appendfsync")
            .argument("no")
            .argument("--enable-debug-command")
            .argument("local")
            .own_clock();
        let server = Server::start(&binary, options).expect("the server starts");
        let mut session = connect(&server).await;
        let listener = Listener::start(&mut *session).await;
        let site = Self {
            server,
            session,
            listener,
            transacts,
        };
        site.expire_nothing();
        site
    }

    /// Does what a call asks for.
    pub(crate) async fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> CallResult {
        self.session.call(keyspace, requests).await
    }

    /// Does what a transaction asks for.
    pub(crate) async fn transact(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> CallResult {
        self.session.transact(keyspace, requests).await
    }

    /// Returns the messages since it was asked last.
    pub(crate) async fn heard(&mut self) -> Messages {
        let server = &self.server;
        let publish = |channel: &str, text: &str| {
            let heard = server.command(&["PUBLISH", channel, text]);
            let heard = heard.unwrap_or_else(|error| panic!("{channel}: {error}"));
            heard.as_integer().expect("a number of subscribers")
        };
        self.listener.heard(publish).await
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Value {
        self.server
            .command(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Gives the user of the session the right to publish, or takes it.
    pub(crate) fn may_publish(&self, may_publish: bool) {
        let right = if may_publish { "+publish" } else { "-publish" };
        self.command(&["ACL", "SETUSER", USER, right]);
    }

    pub(crate) async fn drop_scripts(&mut self) {
        self.command(&["SCRIPT", "FLUSH"]);
        if self.transacts {
            // A transaction that meets a server without its script leaves unclear what the model does.
            self.session = connect(&self.server).await;
        }
    }

    pub(crate) fn set_clock(&self, micros: u64) {
        let clock = self.server.clock().expect("it has one of its own");
        clock
            .set(Duration::from_micros(micros))
            .expect("the clock can be set");
    }

    /// Kills the server and starts it again; its clock has to be set then.
    pub(crate) async fn restart(&mut self) {
        // While it starts it would remove expired keys by itself. On this day nothing has expired.
        self.set_clock(DAY_ONE);
        self.server.restart().expect("the server starts again");
        self.expire_nothing();
        self.session = connect(&self.server).await;
        self.listener = Listener::start(&mut *self.session).await;
    }

    pub(crate) fn run(&self) -> RunId {
        let info = self.command(&["INFO", "server"]);
        let text = info.as_text().expect("it is text");
        let id = text.lines().find_map(|line| line.strip_prefix("run_id:"));
        id.expect("it has one").into()
    }

    /// Returns the file that the server reads at its next start, unless it writes every command to a file.
    pub(crate) fn saved(&self) -> PathBuf {
        let folder = self.command(&["CONFIG", "GET", "dir"]);
        let folder = folder.as_array().and_then(|pair| pair.get(1)?.as_text());
        PathBuf::from(folder.expect("it has a folder")).join("dump.rdb")
    }

    /// Drops all data and scripts, on disk too.
    pub(crate) fn forget(&self) {
        self.command(&["FLUSHALL"]);
        if !self.transacts {
            self.command(&["SCRIPT", "FLUSH"]);
        }
        // There is none if nothing was saved.
        let _ = fs::remove_file(self.saved());
    }

    /// The server itself removes expired keys when it has time; when that is cannot be modelled.
    fn expire_nothing(&self) {
        self.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
    }
}

/// Makes a user beside the one that looks on, and connects.
async fn connect(server: &Server) -> Box<dyn Session> {
    let user = ["ACL", "SETUSER", USER, "on", ">sesame", "~*", "&*", "+@all"];
    server.command(&user).expect("the server takes users");
    let url = format!("redis://{USER}:sesame@{}", server.address());
    let node = RedisNode::at(&url).expect("the URL is valid");
    node.connect().await.expect("the server is up")
}

const USER: &str = "caller";
const DAY_ONE: u64 = 86_400_000_000;
