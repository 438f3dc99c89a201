//! The library of functions: the script, on servers whose process remembers what it has looked at.
//!
//! Only where restarts are declared to be delayed does the client call it: a function can tell that the process never had a
//! mark.
//! A server of Redis 7 or later, or Valkey, keeps a library beside its data, and its variables beside its scripts.
//!
//! - `witness.lua` remembers which marks were looked at;
//! - `register.lua` says under which names the functions are called.
//!
//! Its name has the version of what nodes store in it, and a hash of its text.
//! So the libraries of all releases of this crate live side by side on a server, each with variables of its own, and
//! none is ever replaced.

use std::sync::LazyLock;

use deadpool_redis::redis::{Cmd, RedisError, Script};

use super::script;

/// Returns the beginning of a call.
pub(super) fn call() -> [&'static str; 2] {
    ["FCALL", &LIBRARY.call]
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
    call: String,
    ready: String,
}

impl Library {
    /// The text is made of constants only.
    fn new() -> Self {
        let script = script::TEXT;
        let body =
            format!("local function script(KEYS, ARGV)\n{script}end\n\n{WITNESS}\n{REGISTER}");
        let hash = Script::new(&body).get_hash()[..12].to_owned();
        let name = format!("redlock_4_{hash}");
        Self {
            text: format!("#!lua name={name}\nlocal NAME = '{name}'\n{body}"),
            call: format!("{name}_call"),
            ready: format!("{name}_ready"),
        }
    }
}

const WITNESS: &str = include_str!("witness.lua");
const REGISTER: &str = include_str!("register.lua");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_proto::Quarantine;

    use super::*;

    #[test]
    fn its_name_has_the_version_of_what_nodes_store() {
        let wire = Quarantine::new(Duration::from_secs(1), 0.01).to_wire();
        let (_, version) = wire.rsplit_once(",v").unwrap();
        let name = format!("#!lua name=redlock_{version}_");
        assert!(LIBRARY.text.starts_with(&name));
    }
}
