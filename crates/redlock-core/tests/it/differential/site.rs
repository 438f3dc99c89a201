//! The real side: a server whose clock the test sets, and one session.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use redlock_core::node::{CallResult, Keyspace, Node, RedisNode, Request, RunId, Session};
use redlock_sandbox::{Persistence, Server, ServerBinary, ServerOptions, Value};

pub(crate) struct Site {
    server: Server,
    form: Form,
    session: Box<dyn Session>,
    /// Whether the server has dropped its scripts and functions since the last call.
    scripts_dropped: bool,
    /// The quick calls of the processes before this one.
    quick_before: u64,
}

/// By which of its two forms the server is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Script,
    /// Functions, for what they serve.
    Functions,
}

impl Site {
    pub(crate) async fn start(persistence: Persistence, form: Form) -> Self {
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
        let session = connect(&server, form).await;
        let site = Self {
            server,
            form,
            session,
            scripts_dropped: false,
            quick_before: 0,
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
        let answer = self.session.call(keyspace, requests).await;
        if self.scripts_dropped && self.form == Form::Functions {
            // A session tries functions that are gone again when it next inspects its server; a new one does so now.
            self.session = connect(&self.server, self.form).await;
        }
        self.scripts_dropped = false;
        answer
    }

    /// Returns how many calls by functions needed no whole look at the server: only these ask it for its time.
    pub(crate) fn quick_calls(&self) -> u64 {
        let info = self.command(&["INFO", "commandstats"]);
        let text = info.as_text().expect("it is text");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_time:calls="));
        let calls = line.and_then(|line| line.split(',').next()?.parse().ok());
        self.quick_before + calls.unwrap_or(0)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Value {
        self.server
            .command(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    pub(crate) fn drop_scripts(&mut self) {
        self.command(&["SCRIPT", "FLUSH"]);
        if self.form == Form::Functions {
            self.command(&["FUNCTION", "FLUSH"]);
        }
        self.scripts_dropped = true;
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
        self.quick_before = self.quick_calls();
        self.server.restart().expect("the server starts again");
        self.expire_nothing();
        self.session = connect(&self.server, self.form).await;
        self.scripts_dropped = false;
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
    pub(crate) fn forget(&mut self) {
        self.command(&["FLUSHALL"]);
        self.drop_scripts();
        // There is none if nothing was saved.
        let _ = fs::remove_file(self.saved());
    }

    /// The server itself removes expired keys when it has time; when that is cannot be modelled.
    fn expire_nothing(&self) {
        self.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
    }
}

async fn connect(server: &Server, form: Form) -> Box<dyn Session> {
    let mut node = RedisNode::at(&server.url()).expect("the URL is valid");
    if form == Form::Script {
        node = node.without_functions();
    }
    node.connect().await.expect("the server is up")
}

const DAY_ONE: u64 = 86_400_000_000;
