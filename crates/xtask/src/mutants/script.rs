//! Mistakes in the script that nodes run.

use super::mutant::{Mutant, by_test};

pub(super) const SCRIPT: &[Mutant] = &[
    alike(
        "release-without-compare",
        "    elseif found == owner then\n      command = 'DEL'\n",
        "    elseif found then\n      command = 'DEL'\n",
    ),
    alike(
        "extension-without-compare",
        "    elseif found == owner then\n      command = 'PEXPIRE'\n",
        "    elseif found then\n      command = 'PEXPIRE'\n",
    ),
    alike(
        "extension-creates",
        "    elseif verb == 'heal' then\n      command = 'SET'\n",
        "    elseif not found then\n      command = 'SET'\n",
    ),
    odd("acquire-without-nx", "'NX', 'PX', ttl)", "'PX', ttl)"),
    alike(
        "acquire-of-a-buried-owner",
        "    elseif owners[tomb] then\n      reply = -3\n    elseif uncounted",
        "    elseif uncounted",
    ),
    alike(
        "heal-of-a-buried-owner",
        "    elseif verb == 'heal' and owners[tomb] then\n      reply = -3\n",
        "",
    ),
    alike(
        "burial-forgotten-in-its-call",
        "    owners[tomb] = owner\n",
        "",
    ),
    alike(
        "burial-without-a-tomb",
        "    reply = failed(try('SET', KEYS[tomb], owner, 'PX', ttl), 'SET') or reply\n",
        "",
    ),
    alike(
        "counter-not-incremented",
        "string.format('%016.0f', second + 1)",
        "string.format('%016.0f', second)",
    ),
    alike(
        "counter-equal-to-the-proposal",
        "token <= second",
        "token < second",
    ),
    alike(
        "counter-not-stored",
        "      local set = try('HSET', fence, ARGV[4 + counter_at], counter)\n",
        "      local set = 1\n",
    ),
    alike(
        "counter-lowered",
        "    elseif counter > counters[counter_at] then\n",
        "    else\n",
    ),
    alike(
        "counter-forgotten-in-its-call",
        " else counters[counter_at] = counter end",
        " end",
    ),
    alike(
        "first-of-the-tokens-stored",
        "    counter = string.format('%016.0f', token + reserved)\n",
        "    counter = token\n",
    ),
    alike(
        "counter-by-tostring",
        "token = string.format('%016.0f', second + 1)",
        "token = tostring(second + 1)",
    ),
    alike(
        "no-floor",
        "counters[place] = stored > floor and stored or floor",
        "counters[place] = counters[place] or '0000000000000000'",
    ),
    alike(
        "floor-forgotten-in-its-call",
        "      if counters[at] < counters[1] then counters[at] = counters[1] end\n",
        "",
    ),
    alike("no-range", "counter > GREATEST then", "false then"),
    alike(
        "range-one-too-long",
        "'9007199253692416'",
        "'9007199253692417'",
    ),
    alike(
        "write-back-not-counted",
        "      counter = ARGV[op + 3]\n",
        "      counter = verb == 'heal' and ARGV[op + 3] or nil\n",
    ),
    alike(
        "aged-without-the-step",
        "math.min(now - last, tonumber(step))",
        "now - last",
    ),
    alike(
        "aged-backwards",
        "math.max(0, math.min(now - last, tonumber(step)))",
        "math.min(now - last, tonumber(step))",
    ),
    alike(
        "quarantine-a-millisecond-short",
        "if detail <= 0 then",
        "if detail <= 1 then",
    ),
    alike(
        "quarantine-a-millisecond-long",
        "if detail <= 0 then",
        "if detail < 0 then",
    ),
    alike(
        "policy-not-compared",
        "      elseif found and its_policy ~= policy then\n        state, detail, refused = 3, its_policy, -4\n",
        "",
    ),
    alike(
        "run-not-compared",
        "if found and (is_same or (trusts == '1' and its_run ~= run)) then",
        "if found then",
    ),
    alike(
        "every-restart-trusted",
        "elseif word == 'voting' and trusts == '1' and its_run ~= run then",
        "elseif word == 'voting' and its_run ~= run then",
    ),
    alike(
        "extension-against-the-policy",
        "    if refused then\n      reply = refused\n    elseif verb == 'heal' and",
        "    if type(refused) == 'string' then\n      reply = refused\n    elseif verb == 'heal' and",
    ),
    alike(
        "open-of-another-quarantine",
        "string.format('%.0f', since) ~= ARGV[op + 2]",
        "false",
    ),
    alike(
        "open-before-the-end",
        "(state == 0 and blesses)",
        "state == 0",
    ),
    alike(
        "open-without-its-floor",
        "      counter_at, counter = 1, ARGV[op + 1]\n",
        "      counter_at, counter = 1, '0000000000000000'\n",
    ),
    alike(
        "last-millisecond-free",
        "(remaining == 0 and 1) or remaining",
        "remaining",
    ),
    alike(
        "taken-key-forgotten-in-its-call",
        "reply, second, owners[place] = 0, token or second, owner",
        "reply, second = 0, token or second",
    ),
    alike(
        "released-key-remembered-in-its-call",
        "    if reply == 0 then owners[place] = false end\n",
        "",
    ),
    alike(
        "twice-the-same-key-unseen",
        "if ARGV[3] ~= 'counters' then",
        "if false then",
    ),
    alike(
        "twice-the-same-counter-unseen",
        "if ARGV[3] ~= 'keys' then",
        "if false then",
    ),
    alike(
        "deletes-what-its-call-took-again",
        "reply, second, owners[place] = 0, token or second, owner",
        "reply, second, owners[place] = 0, token or second, owner\n      if key_place then try('DEL', key) end",
    ),
    alike(
        "release-needs-a-vote",
        "  elseif verb == 'release' or verb == 'bury' then\n    if not found then",
        "  elseif verb == 'release' or verb == 'bury' then\n    if refused then\n      reply = refused\n    elseif not found then",
    ),
    odd(
        "mark-of-another-type-overwritten",
        "try('SET', mark, text, 'NX')",
        "try('SET', mark, text)",
    ),
    odd(
        "damaged-mark-votes",
        "if found == voting and micros then",
        "if found and string.find(found, voting, 1, true) and micros then",
    ),
    odd(
        "damaged-counter-counts",
        "      if #stored ~= 16 then uncounted = MISCOUNTED end\n",
        "",
    ),
    odd(
        "taken-before-it-is-counted",
        "  if counter and not reply then\n",
        "  if command == 'SET' and not reply then try('SET', key, owner, 'NX', 'PX', ttl) end\n  if counter and not reply then\n",
    ),
    odd(
        "counters-not-indexed",
        "failed(try('HSET', fence, 'layout', LAYOUT), 'HSET')\n      or ",
        "",
    ),
    odd(
        "right-not-named",
        "result.err .. ' (' .. command .. ')'",
        "result.err",
    ),
];

/// A mistake that makes the script answer, now or later, what the model does not.
pub(super) const fn alike(name: &'static str, from: &'static str, to: &'static str) -> Mutant {
    script(name, from, to, "--test differential", "alike")
}

/// A mistake that shows on servers that are not as they should be.
const fn odd(name: &'static str, from: &'static str, to: &'static str) -> Mutant {
    script(name, from, to, "--test odd_servers", "")
}

const fn script(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    target: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(
        name,
        "crates/redlock-core/src/node/redis/node.lua",
        from,
        to,
        "redlock-core",
        target,
        filter,
    )
}
