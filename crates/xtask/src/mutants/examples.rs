//! Mistakes in what an example shows, and in what it rests on.

use super::mutant::{Mutant, by_test};

const STORE: &str = "examples/fenced-store/src/store.rs";

pub(super) const EXAMPLES: &[Mutant] = &[
    fenced_store(
        "fence-does-not-compare",
        STORE,
        "if tonumber(newest) > tonumber(ARGV[1]) then return tonumber(newest) end\n",
        "",
    ),
    fenced_store(
        "fence-refuses-newer-tokens",
        STORE,
        "if tonumber(newest) > tonumber(ARGV[1]) then",
        "if newest < ARGV[1] then",
    ),
    fenced_store(
        "fence-forgets",
        STORE,
        " end\nredis.call('SET', KEYS[1], ARGV[1])\n",
        " end\n",
    ),
    fenced_store(
        "refusal-taken-for-success",
        STORE,
        "newest => Written::Refused { newest },",
        "newest => if newest > 0 { Written::Yes } else { Written::Refused { newest } },",
    ),
    fenced_store(
        "tokens-do-not-grow",
        "crates/redlock-core/src/guard.rs",
        "self.holding().token()\n",
        "FencingToken::new(self.holding().token().get().min(1)).expect(\"1 is a token\")\n",
    ),
    by_test(
        "folder-stays-when-its-owner-is-killed",
        "crates/redlock-sandbox/src/folder.rs",
        "read -r _\nfor",
        "read -r _ || exit\nfor",
        "redlock-sandbox",
        "--test orphans",
        "no_folder",
    ),
];

const fn fenced_store(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    by_test(
        name,
        file,
        from,
        to,
        "fenced-store",
        "--test runs",
        "the_late_write",
    )
}
