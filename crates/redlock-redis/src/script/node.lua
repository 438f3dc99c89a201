-- What a node does for one call: a list of operations, in order and in one atomic step.
--
-- KEYS[1]            the node's mark in this namespace
-- KEYS[2..]          the keys of the operations, in order: the lock key, and for acquire, queue, heal, tombstone and
--                    claim the owner's tombstone after it; for queue, release and tombstone, last, the line for the
--                    key; for claim, commit and read then the job's runs, which is the only one for record and
--                    withdraw; and for claim and open, last, the horizon; for sign the client's sign of life
-- the last key       the fencing counters in this namespace
-- ARGV[1]            the namespace's policy, and where others name the server, the epoch and the roll of the session;
--                    behind a minus if keys are only released, which needs no look at the mark unless callers wait for
--                    one of them
-- ARGV[2]            the quarantine's length and step in milliseconds; 1 if a node that still has its data may vote
--                    after a restart, else 0
-- ARGV[3]            what occurs twice: `keys`, `counters`, `both` or nothing
-- ARGV[4], ARGV[5..] how many counters are needed, and which: `floor`, and then the shard of each acquire, queue,
--                    release, tombstone, write_back, heal, claim and commit, in order
-- then, for each operation, its verb and
--   acquire            owner, time to live in milliseconds, first and last of the tokens proposed
--   queue              the same, and of the caller's entry in the line: when it came and its client, for how long it
--                      gets the key, how many tokens, its round, for how long it waits
--   write_back, heal   owner, time to live, counter
--   extend, tombstone       owner, time to live
--   release            owner
--   open               floor, beginning of the quarantine, horizon; no horizon if it blesses
--   claim              owner, time to live, the token proposed, the run, how early and how late it may be, the series
--   commit             owner, time to live, token, run, text, series
--   record, withdraw   run, token, text, series
--   sign               for how many milliseconds
--   tick, inspect, survey, read
-- A lock of several keys has the first six with `_all` behind their names, and how many keys before the owner: it has
-- that number of KEYS, before the tombstone, and of counters. What is done is done with all keys or with none.
-- A shared lock has them with `_shared`. A lock that its holder upgrades from shared to exclusive has them with
-- `_over`, and behind its arguments the owner of the shared one. `acquire_next` is for a writer that waits for readers:
-- behind its arguments is for how many milliseconds no new reader may share the keys. These have how many keys, too.
-- A lock that is one of several slots has acquire, extend, write_back and heal with `_slot`, as those of several keys,
-- and behind the arguments how many slots there are; the last of its KEYS is where that is remembered.
--
-- Answer: state, detail, time in microseconds, beginning of the quarantine in microseconds, the run; then two for
-- each operation.
--   state    1 votes; 0 quarantined, for `detail` more milliseconds; 2 aged: waits to be opened;
--            3 another policy, which is `detail`; -1 not looked at; a string: the error of the look
--   first    0 done; n > 0 another owner has the key for n more milliseconds; -1 another owner has it, and it never
--            expires; a code of `codes`; a string: the error of the operation, which granted nothing
--            for read: the same of the lock, and 0 if no owner has it
--   second   the counter, where a caller waits in line with a plus and how many wait before it; for release and
--            tombstone, where a caller in line has the key now, its client, its round and the token; for inspect what
--            INFO says; for claim the counter and the newest run, or by how many milliseconds it is too early or too
--            late; for read the runs; where another owner keeps acquire or claim from the key, the counter and the
--            label of that owner, if it has one; for OTHER_SLOTS their number and for how many milliseconds it is
--            remembered
--
-- All is read first, in three commands; all writes are made at once, in the order of the operations. An error
-- ends its own operation only, so that one bad key cannot hide what became of the others, and nothing is
-- raised after the first write: a call that fails as a whole has done nothing.
-- A key is never created by an extension, and never changed without comparing its owner. What is granted is
-- counted before it is written: a counter that is too high does no harm.
-- Letting a key go needs nothing but its owner: neither the mark nor memory nor a vote.
--
-- The script is in parts, one behind another: what all of them use (this file, `told`), the line for a key (`line`),
-- the verbs of locks of more than one owner or key (`shared`, `slots`, `grant`, `several`), of jobs (`runs`) and of the
-- node itself (`marks`); then what runs: the look at the node (`look`), and the calls with the verbs of a plain lock.
-- A server makes the functions again for each call. So those of the other verbs are made when one of these is called
-- for, and the verbs of a plain lock are none: a function costs a call up to 2 %.
--
-- Counters and ticks are strings of 16 digits, which compare as they are. Where one must be calculated, doubles are
-- exact below 2^53, but tostring() and `..` lose digits above 10^14.
local GREATEST = '9007199253692416' -- 2^53 - 2^20
local DAMAGED = 'the mark is damaged: delete the key to begin a quarantine'
local BLURRED = 'the horizon is damaged: delete the key and the mark to begin a quarantine'
local MISCOUNTED = 'the fencing counters are damaged'

-- A score as 16 digits; nothing if no counter is such a number.
local function sixteen(score)
  if #score == 16 and not string.find(score, '%D') then return score end
  return #score < 16 and not string.find(score, '%D') and string.rep('0', 16 - #score) .. score or nil
end

-- The error of a command with its name, for not every server says which right is missing.
local function failed(result, command)
  return type(result) == 'table' and result.err and result.err .. ' (' .. command .. ')'
end
