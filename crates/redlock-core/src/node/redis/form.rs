//! The form of the calls over a connection: functions, or the script.
//!
//! Both say the same, and come to the same on the node, so each call may have either.
//! The script does whatever is asked for, on every server that is supported; functions cost a server less.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use deadpool_redis::redis::{RedisError, RedisResult};

use redlock_proto::Quarantine;

use super::{
    error::{is_refusal, reason},
    functions, script,
    transport::Transport,
    wire::Order,
};
use crate::node::Request;

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
    pub(super) fn head(self, requests: &[Request]) -> [&'static str; 2] {
        match self {
            Self::Function => functions::call(requests),
            Self::Hash => script::call(true),
            Self::Text => script::call(false),
        }
    }

    /// Returns the order in which a call has these requests, if no key occurs twice.
    pub(super) fn order(self, requests: &[Request]) -> Order {
        if self.may_be_short(requests) {
            Order::AcquiresFirst
        } else {
            Order::Given
        }
    }

    /// Returns whether the answer to a call with these requests may be the short one, which says that all was done.
    pub(super) fn may_be_short(self, requests: &[Request]) -> bool {
        self == Self::Function && functions::serve(requests)
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
}

/// The client has not tried to call functions yet.
const UNTRIED: u8 = 0;
/// They are called.
const CALLED: u8 = 1;
/// They cannot be called now, and are tried again.
const REFUSED: u8 = 2;
/// They cannot be called over this connection.
const GIVEN_UP: u8 = 3;

impl Forms {
    /// Nothing is known yet; without `functions`, only the script is used.
    pub(super) fn new(node: Arc<str>, functions: bool) -> Self {
        Self {
            node,
            functions: AtomicU8::new(if functions { UNTRIED } else { GIVEN_UP }),
            cached: AtomicBool::new(false),
        }
    }

    /// Notes whether the server has the script in its cache.
    pub(super) fn set_cached(&self, cached: bool) {
        self.cached.store(cached, Ordering::Relaxed);
    }

    /// Returns the form for a call with these requests.
    ///
    /// Only functions remember two things: that a call looked at the mark, which matters where restarts are declared to
    /// be delayed; and that a caller was refused a key.
    pub(super) fn pick(&self, requests: &[Request], quarantine: &Quarantine) -> Form {
        let serves = quarantine.trusts_delayed_restarts()
            || functions::serve(requests)
            || requests.iter().any(functions::takes);
        if self.functions.load(Ordering::Relaxed) == CALLED && serves {
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

    /// Finds out whether functions can be called, unless they are or never will be, and loads them if they are missing.
    pub(super) async fn try_functions(&self, mut connection: Transport) {
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
        tracing::debug!(target: "redlock::node", node = &*self.node, %reason, "node is called by its script");
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
    use redlock_proto::NodeVerb;

    use super::{
        super::fixtures::{RELEASE, lock},
        *,
    };

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

    // Shows: R2.8.
    #[test]
    fn only_a_function_that_serves_a_call_answers_it_in_short() {
        let release = lock(RELEASE);
        let releases = [release.clone()];
        assert!(Form::Function.may_be_short(&releases));
        assert!(!Form::Hash.may_be_short(&releases));
        assert!(!Form::Text.may_be_short(&releases));
        let mixed = [release, Request::Node(NodeVerb::Look)];
        assert!(!Form::Function.may_be_short(&mixed));
    }
}
