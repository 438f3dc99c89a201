//! Mistakes in the script that nodes run.

use super::mutant::{Mutant, by_test};

pub(super) const SCRIPT: &[Mutant] = &[
    alike(
        "release-without-compare",
        "    elseif found == owner then\n      reply = failed(try('DEL'",
        "    elseif found then\n      reply = failed(try('DEL'",
    ),
    alike(
        "extension-without-compare",
        "refused, found == owner",
        "refused, found and true",
    ),
    alike(
        "extension-creates",
        "    elseif not found then\n      reply = reply or -2\n    end",
        "    end",
    ),
    odd("acquire-without-nx", "'NX', 'PX', ttl)", "'PX', ttl)"),
    alike(
        "acquire-of-a-buried-owner",
        "refused or owners[place + 1] and -3 or uncounted",
        "refused or uncounted",
    ),
    alike(
        "heal-of-a-buried-owner",
        "reply or owners[place + 1] and -3\n",
        "reply\n",
    ),
    alike(
        "burial-forgotten-in-its-call",
        "    owners[next_key], op, next_key = owner, op + 1, next_key + 1\n",
        "    op, next_key = op + 1, next_key + 1\n",
    ),
    alike(
        "burial-without-a-tomb",
        "    reply = failed(try('SET', KEYS[place + 1], owner, 'PX', ttl), 'SET') or reply\n",
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
        "        local set = try('HSET', KEYS[#KEYS], ARGV[4 + count_at], counter)\n",
        "        local set = 1\n",
    ),
    alike(
        "counter-lowered",
        "      elseif counter > counters[count_at] then\n",
        "      else\n",
    ),
    alike(
        "counter-forgotten-in-its-call",
        " else counters[count_at] = counter end",
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
        "          if counters[counter_at] < counters[1] then counters[counter_at] = counters[1] end\n",
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
        "    if verb ~= 'extend' then counter, op,",
        "    if verb ~= 'extend' then counter, op, counter_at = verb == 'heal' and ARGV[op] or nil, op + 1, count_at end\n    if false then counter, op,",
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
        "next_key + 1, refused, found",
        "next_key + 1, type(refused) == 'string' and refused, found",
    ),
    alike(
        "open-of-another-quarantine",
        "string.format('%.0f', replies[4]) ~= began",
        "false",
    ),
    alike(
        "open-before-the-end",
        "(replies[1] == 0 and blesses)",
        "replies[1] == 0",
    ),
    alike(
        "open-without-its-floor",
        "return nil, 0, floor, function",
        "return nil, 0, '0000000000000000', function",
    ),
    alike(
        "last-millisecond-free",
        "(reply == 0 and 1) or reply",
        "reply",
    ),
    alike(
        "taken-key-forgotten-in-its-call",
        "owners[place], second = owner, token or second",
        "second = token or second",
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
        "if ARGV[3] ~= 'keys' and not uncounted then",
        "if false then",
    ),
    alike(
        "deletes-what-its-call-took-again",
        "        owners[place], second = owner, token or second\n",
        "        owners[place], second = owner, token or second\n        if ARGV[3] == 'both' or ARGV[3] == 'keys' then try('DEL', KEYS[place]) end\n",
    ),
    alike(
        "release-needs-a-vote",
        "    op, next_key = op + 2, next_key + 1\n    if not found then",
        "    op, next_key = op + 2, next_key + 1\n    if refused then\n      reply = refused\n    elseif not found then",
    ),
    odd(
        "mark-of-another-type-overwritten",
        "try('SET', KEYS[1], text, 'NX')",
        "try('SET', KEYS[1], text)",
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
        "    if counter then\n      if uncounted",
        "    if not (prolongs or work) then try('SET', KEYS[place], owner, 'NX', 'PX', ttl) end\n    if counter then\n      if uncounted",
    ),
    odd(
        "counters-not-indexed",
        "failed(try('HSET', KEYS[#KEYS], 'layout', LAYOUT), 'HSET')\n          or ",
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
