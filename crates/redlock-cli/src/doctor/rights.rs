//! The rights of a node's user, found by using each of them on a scratch key.

use redlock_core::{
    deadpool_redis::redis::{Cmd, RedisError, cmd},
    node::RedisNode,
};
use uuid::Uuid;

use crate::{connection::Settings, probe::Probe};

/// What a user may not do, and what the node refuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights {
    /// In the words of `ACL SETUSER`.
    pub(super) missing: Vec<String>,
    /// Whether it may not use the namespace's keys.
    pub(super) lacks_keys: bool,
    /// The code with which the node refuses to write.
    pub(super) refuses_writes: Option<String>,
}

/// Tries every right; nothing is left behind, and what a lost connection leaves there ends by itself.
pub(super) async fn of(probe: &mut Probe, settings: &Settings) -> Rights {
    let mut rights = Rights::default();
    let name = format!("redlock-doctor:{}", Uuid::new_v4().simple());
    let key = name
        .parse()
        .ok()
        .and_then(|name| settings.keys.lock(&name).ok());
    let Some(key) = key else {
        return rights;
    };
    // A node that cannot be called by functions is quarantined though its restarts are delayed.
    let functions = settings
        .config
        .expert
        .dangerous_trust_delayed_restarts
        .then_some(RedisNode::RIGHTS_FOR_FUNCTIONS);
    let wanted = RedisNode::RIGHTS.split_whitespace();
    let wanted = wanted.chain(functions.unwrap_or_default().split_whitespace());
    for right in wanted {
        let Some(command) = trial(right, &key) else {
            continue;
        };
        match probe.ask(&command).await {
            Err(error) if error.code() == Some("NOPERM") => rights.lacks(right, &error),
            Err(error) if right == "+set" => rights.refuses_writes = refusal(&error),
            _ => {}
        }
        // Without the right to, it ends a second later.
        if right == "+set" {
            drop(probe.ask(cmd("DEL").arg(&key)).await);
        }
    }
    rights
}

impl Rights {
    fn lacks(&mut self, right: &str, error: &RedisError) {
        // Versions say it in other words: "to run the 'set' command", or "access ... the keys used as arguments".
        let is_about_keys = error.detail().is_some_and(|words| words.contains("key"));
        if is_about_keys {
            self.lacks_keys = true;
        } else {
            self.missing.push(right.to_owned());
        }
    }
}

/// Returns a command that needs a right and changes nothing but the scratch key; `None` if there is none.
fn trial(right: &str, key: &str) -> Option<Cmd> {
    let name = right.trim_start_matches('+').to_ascii_uppercase();
    let mut words = name.split('|');
    let mut command = cmd(words.next().unwrap_or_default());
    for word in words {
        command.arg(word);
    }
    match name.as_str() {
        "PING" | "INFO" | "TIME" => {}
        "FCALL" => drop(command.arg("redlock_doctor").arg(0)),
        // No library is loaded from this.
        "FUNCTION|LOAD" => drop(command.arg("")),
        "EVAL" => drop(command.arg("return 0").arg(0)),
        "EVALSHA" => drop(command.arg("0".repeat(40)).arg(0)),
        "DEL" | "PTTL" | "MGET" | "HVALS" => drop(command.arg(key)),
        "PEXPIRE" => drop(command.arg(key).arg(1_000)),
        "HMGET" => drop(command.arg(key).arg("floor")),
        "SET" => drop(command.arg(key).arg("doctor").arg("PX").arg(1_000)),
        // A field without a value: rights are looked at first, and then nothing is written, which would have no end.
        "HSET" => drop(command.arg(key).arg("floor").arg("0").arg("holder")),
        _ => return None,
    }
    Some(command)
}

fn refusal(error: &RedisError) -> Option<String> {
    let code = error.code()?;
    code.bytes()
        .all(|byte| byte.is_ascii_uppercase())
        .then(|| code.to_owned())
}
