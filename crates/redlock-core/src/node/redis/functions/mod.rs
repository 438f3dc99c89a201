//! The library of functions: what nodes are asked for all the time, in fewer commands than the script needs.
//!
//! A server of Redis 7 or later, or Valkey, keeps a library beside its data, and its variables beside its scripts.
//! This one is made of the script itself, to which it leaves whatever is out of the ordinary, and four parts:
//!
//! - `witness.lua` remembers that the mark was looked at, so that most calls need not ask the server what it is;
//! - `disputes.lua` remembers which keys were refused, so that a holder can tell whether a caller waits for its key;
//! - `leases.lua` acquires, releases and extends;
//! - `register.lua` says under which names.
//!
//! Its name has the version of what nodes store in it, and a hash of its text.
//! So the libraries of all releases of this crate live side by side on a server, each with variables of its own, and
//! none is ever replaced.

use std::sync::LazyLock;

use deadpool_redis::redis::{Cmd, RedisError, Script};
use redlock_proto::{FencingToken, JobVerb, LockMode, Verb};

use super::script;
use crate::node::Request;

/// Returns whether the library has functions for all of these requests.
///
/// Tokens beyond their range are left to the script, which says so, and so are locks of several keys, shared and
/// upgraded ones, slots, and acquires that leave a wish.
pub(super) fn serve(requests: &[Request]) -> bool {
    let is_served = |request: &Request| match request {
        Request::Lock { lock, .. }
            if lock.keys.is_several() || lock.mode != LockMode::Exclusive =>
        {
            false
        }
        Request::Lock { verb, lock } if lock.keys.slots().is_some() => {
            matches!(verb, Verb::Release { .. })
        }
        Request::Lock { verb, .. } => match *verb {
            Verb::Acquire {
                proposal,
                block,
                wish: None,
                ..
            } => proposal.saturating_add(block.into()) <= FencingToken::MAX.get(),
            Verb::Extend { write_back, .. } => write_back.is_none(),
            Verb::Release { .. } => true,
            Verb::Acquire { wish: Some(_), .. } | Verb::Heal { .. } | Verb::Tombstone { .. } => {
                false
            }
        },
        Request::Node(_) | Request::Job { .. } => false,
    };
    !requests.is_empty() && requests.iter().all(is_served)
}

/// Returns the beginning of a call of a function: of one of its own for requests that the library serves, and of the script
/// within the library for others.
pub(super) fn call(requests: &[Request]) -> [&'static str; 2] {
    let function = if !serve(requests) {
        &LIBRARY.call
    } else if requests.iter().any(takes) {
        &LIBRARY.take
    } else {
        &LIBRARY.keep
    };
    ["FCALL", function]
}

/// Returns whether a request takes a key, which may be refused.
pub(super) const fn takes(request: &Request) -> bool {
    matches!(
        request,
        Request::Lock {
            verb: Verb::Acquire { .. },
            ..
        } | Request::Job {
            verb: JobVerb::Claim { .. },
            ..
        }
    )
}

/// Returns the command that is answered only if functions can be called.
pub(super) fn ready() -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("FCALL").arg(&LIBRARY.ready).arg(0);
    cmd
}

/// Returns the command that hands the library over; it replaces nothing.
pub(super) fn load() -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg("FUNCTION").arg("LOAD").arg(&LIBRARY.text);
    cmd
}

/// Returns whether the server has not the library; the call was not run then.
pub(super) fn are_missing(error: &RedisError) -> bool {
    error.code() == Some("ERR") && error.detail() == Some("Function not found")
}

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::new);

struct Library {
    text: String,
    take: String,
    keep: String,
    call: String,
    ready: String,
}

impl Library {
    /// The text is made of constants only.
    fn new() -> Self {
        let (told, script) = (script::TOLD, script::BODY);
        let body = format!(
            "{told}local function script(KEYS, ARGV)\n{script}end\n\n{DISPUTES}\n{WITNESS}\n{LEASES}\n{REGISTER}"
        );
        let hash = Script::new(&body).get_hash()[..12].to_owned();
        let name = format!("redlock_2_{hash}");
        Self {
            text: format!("#!lua name={name}\nlocal NAME = '{name}'\n{body}"),
            take: format!("{name}_take"),
            keep: format!("{name}_keep"),
            call: format!("{name}_call"),
            ready: format!("{name}_ready"),
        }
    }
}

const DISPUTES: &str = include_str!("disputes.lua");
const WITNESS: &str = include_str!("witness.lua");
const LEASES: &str = include_str!("leases.lua");
const REGISTER: &str = include_str!("register.lua");

#[cfg(test)]
mod tests {
    use redlock_proto::{KeySet, Lock, NodeKey, NodeVerb, OwnerId, Quarantine};

    use super::{
        super::fixtures::{RELEASE, TTL, acquire, extend, lock},
        *,
    };

    #[test]
    fn only_what_is_asked_for_all_the_time_is_served() {
        let release = lock(RELEASE);
        assert!(serve(&[acquire(1), extend(None), release.clone()]));
        let tick = Request::Node(NodeVerb::Look);
        let tombstone = lock(Verb::Tombstone { ttl: TTL });
        let max = FencingToken::MAX.get();
        for other in [tick, tombstone, extend(Some(1)), acquire(max - 15)] {
            assert!(!serve(&[release.clone(), other.clone()]), "{other:?}");
        }
        assert!(!serve(&[]));
        let keys = ["a", "b"].map(NodeKey::from);
        let several = Request::Lock {
            verb: RELEASE,
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: KeySet::new(keys).unwrap(),
                owner: OwnerId::from_random([1; 16]),
            }
            .into(),
        };
        assert!(!serve(&[several]));
    }

    #[test]
    fn only_what_takes_a_key_needs_memory() {
        let called = |requests: &[Request]| call(requests)[1];
        let release = lock(RELEASE);
        assert!(called(&[extend(None), release.clone()]).ends_with("_keep"));
        assert!(called(&[release.clone(), acquire(1)]).ends_with("_take"));
        let tick = Request::Node(NodeVerb::Look);
        assert!(called(&[release, tick]).ends_with("_call"));
    }

    #[test]
    fn its_name_has_the_version_of_what_nodes_store() {
        let wire = Quarantine::new(TTL, 0.01).to_wire();
        let (_, version) = wire.rsplit_once(",v").unwrap();
        let name = format!("#!lua name=redlock_{version}_");
        assert!(LIBRARY.text.starts_with(&name));
    }
}
