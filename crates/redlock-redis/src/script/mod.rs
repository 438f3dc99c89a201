//! The script, as text and as the hash under which servers cache it.

use std::sync::LazyLock;

use deadpool_redis::redis::{Cmd, Script};

/// The text never changes at run time; no input is ever made part of it.
///
/// What only some verbs need stands in a function, which makes its own functions when it is called, and has the codes as
/// its own: each variable of the whole script that a function uses costs every call a little.
const TEXT: &str = concat!(
    include_str!("node.lua"),
    include_str!("told.lua"),
    include_str!("line.lua"),
    "local function several_verb(one, kind, op, call)\n",
    include_str!("codes.lua"),
    include_str!("shared.lua"),
    include_str!("slots.lua"),
    include_str!("grant.lua"),
    include_str!("several.lua"),
    "end\nlocal function other_verb(verb, call)\n",
    include_str!("codes.lua"),
    include_str!("runs.lua"),
    include_str!("marks.lua"),
    "end\n",
    include_str!("codes.lua"),
    include_str!("look.lua"),
    include_str!("calls.lua"),
);

/// The codes of answers, as the script has them.
#[cfg(test)]
pub(crate) const CODES: &str = include_str!("codes.lua");

/// The script that keeps and releases keys in transactions.
const KEEP: &str = include_str!("keep.lua");

static HASH: LazyLock<String> = LazyLock::new(|| Script::new(TEXT).get_hash().to_owned());
static HASH_OF_KEEP: LazyLock<String> = LazyLock::new(|| Script::new(KEEP).get_hash().to_owned());

/// Returns the commands that hand the scripts over, to stay until all scripts are dropped.
pub(crate) fn load() -> [Cmd; 2] {
    [TEXT, KEEP].map(|text| {
        let mut cmd = Cmd::new();
        cmd.arg("SCRIPT").arg("LOAD").arg(text);
        cmd
    })
}

/// Returns the beginning of a call of the script, by its hash if the server has it.
pub(crate) fn call(cached: bool) -> [&'static str; 2] {
    if cached {
        ["EVALSHA", &HASH]
    } else {
        ["EVAL", TEXT]
    }
}

/// Returns the beginning of a call of the script of transactions.
pub(crate) fn keep(cached: bool) -> [&'static str; 2] {
    if cached {
        ["EVALSHA", &HASH_OF_KEEP]
    } else {
        ["EVAL", KEEP]
    }
}

/// Returns whether these words are a sentence that the script has in it.
pub(crate) fn has_words(words: &str) -> bool {
    words.split(' ').count() > 3 && TEXT.contains(&format!("'{words}'"))
}
