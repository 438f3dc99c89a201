//! The form of the calls over a connection: transactions, the script, or the script as a function.
//!
//! The script does whatever is asked for, on every server that is supported.
//! Transactions cost a server a third of that, and do what is asked for all the time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use deadpool_redis::redis::{RedisError, RedisResult, Value, cmd};

use redlock_proto::{Keyspace, Quarantine};

use super::{
    error::{is_refusal, reason},
    functions, script,
    transport::Transport,
    wire::Block,
};

/// How one call is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// By a function.
    Function,
    /// By the hash of the script, which the server has in its cache.
    Hash,
    /// By the script's text, with which the server keeps it.
    Text,
}

impl Form {
    /// Returns the beginning of a call with these requests.
    pub(super) fn head(self) -> [&'static str; 2] {
        match self {
            Self::Function => functions::call(),
            Self::Hash => script::call(true),
            Self::Text => script::call(false),
        }
    }
}

/// What is known of a connection: which forms its server takes.
#[derive(Debug)]
pub(super) struct Forms {
    /// The name of the node, for the log.
    node: Arc<str>,
    functions: AtomicU8,
    /// Whether the server has the script in its cache.
    cached: AtomicBool,
    /// Whether it has the script of transactions there.
    keep_cached: AtomicBool,
    transactions: AtomicU8,
}

/// The client has not tried to call functions, or to carry out transactions, yet.
const UNTRIED: u8 = 0;
/// The server takes them.
const CALLED: u8 = 1;
/// It does not take them now, and is tried again.
const REFUSED: u8 = 2;
/// It does not take them over this connection.
const GIVEN_UP: u8 = 3;

impl Forms {
    /// Nothing is known yet; without `functions`, only the script is used.
    pub(super) fn new(node: Arc<str>, functions: bool) -> Self {
        Self {
            node,
            functions: AtomicU8::new(if functions { UNTRIED } else { GIVEN_UP }),
            cached: AtomicBool::new(false),
            keep_cached: AtomicBool::new(false),
            transactions: AtomicU8::new(UNTRIED),
        }
    }

    /// Notes whether the server has the script in its cache.
    pub(super) fn set_cached(&self, cached: bool) {
        self.cached.store(cached, Ordering::Relaxed);
    }

    /// Notes whether the server has the script of transactions in its cache.
    pub(super) fn set_keep_cached(&self, cached: bool) {
        self.keep_cached.store(cached, Ordering::Relaxed);
    }

    /// Notes that the server may have lost the scripts: what one of them left undone, the other does next, over the same
    /// connection, and it cannot be made again by its text behind others.
    pub(super) fn forget_scripts(&self) {
        self.set_cached(false);
        self.set_keep_cached(false);
    }

    /// Returns the beginning of a call of that script.
    pub(super) fn keep(&self) -> [&'static str; 2] {
        script::keep(self.keep_cached.load(Ordering::Relaxed))
    }

    /// Returns whether the server carries out transactions, as far as is known.
    pub(super) fn transacts(&self) -> bool {
        self.transactions.load(Ordering::Relaxed) == CALLED
    }

    /// Notes that the server refuses transactions, until it is asked again what it is.
    pub(super) fn refuse_transactions(&self) {
        self.transactions.store(REFUSED, Ordering::Relaxed);
    }

    /// Finds out whether the server has transactions at all, unless that is known.
    ///
    /// Without them it would carry their commands out one by one.
    pub(super) async fn try_transactions(&self, mut connection: Transport) {
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

    /// Returns the form for a call.
    ///
    /// Only functions remember that a call looked at the mark, which matters where restarts are declared to be delayed.
    pub(super) fn pick(&self, quarantine: &Quarantine) -> Form {
        let functions = self.functions.load(Ordering::Relaxed) == CALLED;
        if functions && quarantine.trusts_delayed_restarts() {
            Form::Function
        } else {
            self.of_the_script()
        }
    }

    fn of_the_script(&self) -> Form {
        if self.cached.load(Ordering::Relaxed) {
            Form::Hash
        } else {
            Form::Text
        }
    }

    /// Returns the form in which to make a call again that was answered with this error; `None` if none does better.
    ///
    /// The call was not run.
    pub(super) fn instead_of(&self, form: Form, error: &RedisError) -> Option<Form> {
        match form {
            Form::Function if is_refusal(error) => {
                if self.functions.swap(REFUSED, Ordering::Relaxed) == CALLED {
                    self.tell_of_the_script(error);
                }
                Some(self.of_the_script())
            }
            Form::Hash if error.code() == Some("NOSCRIPT") => {
                self.set_cached(false);
                Some(Form::Text)
            }
            Form::Hash | Form::Text if is_final(error) => {
                // A node that does not take the script is of no use, and must not hide that behind its functions.
                self.functions.store(GIVEN_UP, Ordering::Relaxed);
                None
            }
            _ => None,
        }
    }

    /// Returns whether the next call must wait until it is known whether functions can be called.
    pub(super) fn wait_for_functions(&self, keyspace: &Keyspace) -> bool {
        self.functions.load(Ordering::Relaxed) == UNTRIED
            && keyspace.quarantine().trusts_delayed_restarts()
    }

    /// Finds out whether functions can be called, unless they are or never will be, and loads them if they are missing.
    pub(super) async fn try_functions(&self, keyspace: &Keyspace, mut connection: Transport) {
        if !keyspace.quarantine().trusts_delayed_restarts() {
            return;
        }
        if let CALLED | GIVEN_UP = self.functions.load(Ordering::Relaxed) {
            return;
        }
        match ready(&mut connection).await {
            Ok(()) => {
                self.functions.store(CALLED, Ordering::Relaxed);
                tracing::debug!(target: "redlock::node", node = &*self.node, "node is called by functions");
            }
            Err(error) => {
                let now = if is_final(&error) { GIVEN_UP } else { REFUSED };
                if self.functions.swap(now, Ordering::Relaxed) != now {
                    self.tell_of_the_script(&error);
                }
            }
        }
    }

    fn tell_of_the_script(&self, error: &RedisError) {
        let reason = reason(error);
        tracing::debug!(target: "redlock::node", node = &*self.node, reason = &*reason, "node is called by its script");
    }
}

/// Returns whether an error will not go away: versions and rights stay as they are while a connection lasts, and memory and
/// roles do not.
fn is_final(error: &RedisError) -> bool {
    matches!(error.code(), Some("ERR" | "NOPERM"))
}

/// Waits until functions can be called.
async fn ready(connection: &mut Transport) -> RedisResult<()> {
    match connection.ask(&functions::ready()).await {
        Err(error) if functions::are_missing(&error) => {}
        answered => return answered.map(drop),
    }
    let loaded = connection.ask(&functions::load()).await;
    match (connection.ask(&functions::ready()).await, loaded) {
        // Another client may have loaded them meanwhile, which is as good.
        (Ok(_), _) => Ok(()),
        (Err(missing), Err(error)) if functions::are_missing(&missing) => Err(error),
        (Err(error), _) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use deadpool_redis::redis::parse_redis_value;

    use super::*;

    #[test]
    fn a_server_that_knows_no_functions_any_more_is_called_by_the_script() {
        let forms = Forms::new("node".into(), true);
        forms.functions.store(CALLED, Ordering::Relaxed);
        let said = parse_redis_value(b"-ERR unknown command 'FCALL'\r\n").unwrap();
        let error = said.extract_error().unwrap_err();
        let again = forms.instead_of(Form::Function, &error);
        assert!(matches!(again, Some(Form::Text)), "{again:?}");
        assert_eq!(
            forms.functions.load(Ordering::Relaxed),
            REFUSED,
            "and tried again later"
        );
    }
}
