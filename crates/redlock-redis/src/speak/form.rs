//! The form of the calls over a connection: transactions, or the script.
//!
//! The script does whatever is asked for, on every server that is supported.
//! Transactions cost a server a third of that, and do what is asked for all the time.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use deadpool_redis::redis::{RedisError, Value, cmd};

use super::{transport::Transport, wire::Block};
use crate::script;

/// How one call is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// By the hash of the script, which the server has in its cache.
    Hash,
    /// By the script's text, with which the server keeps it.
    Text,
}

impl Form {
    /// Returns the beginning of a call with these requests.
    pub(crate) fn head(self) -> [&'static str; 2] {
        match self {
            Self::Hash => script::call(true),
            Self::Text => script::call(false),
        }
    }
}

/// What is known of a connection: which forms its server takes.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// Whether the server has the script in its cache.
    cached: AtomicBool,
    /// Whether it has the script of transactions there.
    keep_cached: AtomicBool,
    /// 0 until it was tried.
    transactions: AtomicU8,
}

/// The server takes transactions.
const CALLED: u8 = 1;
/// It does not take them now, and is tried again.
const REFUSED: u8 = 2;
/// It does not take them over this connection.
const GIVEN_UP: u8 = 3;

impl Forms {
    /// Notes whether the server has the script in its cache.
    pub(crate) fn set_cached(&self, cached: bool) {
        self.cached.store(cached, Ordering::Relaxed);
    }

    /// Notes whether the server has the script of transactions in its cache.
    pub(crate) fn set_keep_cached(&self, cached: bool) {
        self.keep_cached.store(cached, Ordering::Relaxed);
    }

    /// Notes that the server may have lost the scripts: what one of them left undone, the other does next, over the same
    /// connection, and it cannot be made again by its text behind others.
    pub(crate) fn forget_scripts(&self) {
        self.set_cached(false);
        self.set_keep_cached(false);
    }

    /// Returns the beginning of a call of that script.
    pub(crate) fn keep(&self) -> [&'static str; 2] {
        script::keep(self.keep_cached.load(Ordering::Relaxed))
    }

    /// Returns whether the server carries out transactions, as far as is known.
    pub(crate) fn transacts(&self) -> bool {
        self.transactions.load(Ordering::Relaxed) == CALLED
    }

    /// Notes that the server refuses transactions, until it is asked again what it is.
    pub(crate) fn refuse_transactions(&self) {
        self.transactions.store(REFUSED, Ordering::Relaxed);
    }

    /// Finds out whether the server has transactions at all, unless that is known.
    ///
    /// Without them it would carry their commands out one by one.
    pub(crate) async fn try_transactions(&self, mut connection: Transport) {
        if let CALLED | GIVEN_UP = self.transactions.load(Ordering::Relaxed) {
            return;
        }
        // A connection that may begin a transaction and not end it would carry nothing out any more.
        let end = connection.ask(&cmd("EXEC")).await;
        let may_end = |error: &RedisError| error.to_string().contains("without MULTI");
        let begun = match end {
            Err(error) if !may_end(&error) => Err(error),
            _ => {
                let begun = connection.ask_all(&Block::empty()).await;
                begun.map_err(|failed| failed.error)
            }
        };
        let now = match begun {
            Ok(Value::Array(_)) => CALLED,
            // Each refusal is a line in the server's log of what users may not do.
            // Servers call it so if it is `EXEC` that the user may not call.
            Err(error) if is_final(&error) || error.code() == Some("EXECABORT") => GIVEN_UP,
            _ => REFUSED,
        };
        self.transactions.store(now, Ordering::Relaxed);
    }

    /// Returns the form for a call of the script.
    pub(crate) fn pick(&self) -> Form {
        if self.cached.load(Ordering::Relaxed) {
            Form::Hash
        } else {
            Form::Text
        }
    }

    /// Returns the form in which to make a call again that was answered with this error; `None` if none does better.
    ///
    /// The call was not run.
    pub(crate) fn instead_of(&self, form: Form, error: &RedisError) -> Option<Form> {
        let is_missing = form == Form::Hash && error.code() == Some("NOSCRIPT");
        is_missing.then(|| {
            self.set_cached(false);
            Form::Text
        })
    }
}

/// Returns whether an error will not go away: versions and rights stay as they are while a connection lasts, and memory and
/// roles do not.
fn is_final(error: &RedisError) -> bool {
    matches!(error.code(), Some("ERR" | "NOPERM"))
}
