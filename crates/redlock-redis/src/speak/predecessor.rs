//! The end of a connection that was given up, at the server too.
//!
//! A transaction does not look for the tombstone of its owner.
//! One that is still on its way over a connection that was given up would take a key that its owner has released.
//! So the next connection ends that one at the server first, where the user may.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use deadpool_redis::redis::{Cmd, Value, cmd};
use futures_util::future::join;

use super::transport::Transport;

/// The last connection to a server, as the server knows it.
#[derive(Clone, Default)]
pub(crate) struct Predecessor(Arc<Mutex<Option<Known>>>);

struct Known {
    /// Which run of the server it was: another run gives the numbers again.
    run: String,
    number: i64,
    /// Whether a session still uses it.
    session: Weak<()>,
}

impl Predecessor {
    /// Ends the connection before this one at the server, unless a session still uses it, and remembers this one until
    /// the token is dropped.
    pub(crate) async fn succeed(&self, connection: &Transport) -> Arc<()> {
        let token = Arc::new(());
        let (mut one, mut other) = (connection.clone(), connection.clone());
        let (id, server) = (number(), server());
        let (id, server) = join(one.ask(&id), other.ask(&server)).await;
        let (Ok(Value::Int(number)), Some(run)) = (id, server.ok().and_then(run)) else {
            return token;
        };
        let known = Known {
            run,
            number,
            session: Arc::downgrade(&token),
        };
        let ended = {
            // Nothing panics while the lock is held.
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let before = last.take();
            let ended = before
                .filter(|before| before.run == known.run && before.session.strong_count() == 0);
            *last = Some(known);
            ended
        };
        if let Some(ended) = ended {
            // Without the right to, a key may stay for its time to live.
            drop(one.ask(&kill(ended.number)).await);
        }
        token
    }
}

fn number() -> Cmd {
    let mut client = cmd("CLIENT");
    client.arg("ID");
    client
}

fn server() -> Cmd {
    let mut info = cmd("INFO");
    info.arg("server");
    info
}

fn kill(number: i64) -> Cmd {
    let mut client = cmd("CLIENT");
    client.arg("KILL").arg("ID").arg(number);
    client
}

/// Reads which run of a server it is.
fn run(info: Value) -> Option<String> {
    let text = match info {
        Value::BulkString(text) => String::from_utf8(text).ok()?,
        Value::VerbatimString { text, .. } => text,
        _ => return None,
    };
    let run = text.lines().find_map(|line| line.strip_prefix("run_id:"));
    run.map(str::to_owned)
}
