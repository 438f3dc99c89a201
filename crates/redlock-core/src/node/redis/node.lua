-- What a node does for one call: a list of operations, in order and in one atomic step.
--
-- KEYS[1]            the node's mark in this namespace
-- KEYS[2..]          the keys of the operations, in order: the lock key, and for acquire, heal, bury and claim
--                    the owner's tomb after it; for claim, commit and read then the job's runs, which is the
--                    only one for record; and for claim and open, last, the horizon
-- the last key       the fencing counters in this namespace
-- ARGV[1]            the namespace's policy; empty if keys are only let go, for which nobody looks at the mark
-- ARGV[2]            the quarantine's length and step in milliseconds, and 1 if a node that still has its data
--                    may vote after a restart
-- ARGV[3]            what occurs twice: `keys`, `counters`, `both` or nothing
-- ARGV[4], ARGV[5..] how many counters are needed, and which: `floor`, and then the shard of each acquire,
--                    write_back, heal, claim and commit, in order
-- then, for each operation, its verb and
--   acquire            owner, time to live in milliseconds, first and last of the tokens proposed
--   write_back, heal   owner, time to live, counter
--   extend, bury       owner, time to live
--   release            owner
--   open               floor, beginning of the quarantine, horizon; no horizon if it blesses
--   claim              owner, time to live, the token proposed, the tick, how early and how late it may be
--   commit             owner, time to live, token, tick, text
--   record             tick, token, text
--   tick, inspect, survey, read
--
-- Answer: state, detail, time in microseconds, beginning of the quarantine in microseconds; then two for
-- each operation.
--   state    1 votes; 0 quarantined, for `detail` more milliseconds; 2 aged: waits to be opened;
--            3 another policy, which is `detail`; -1 not looked at; a string: the error of the look
--   first    0 done; -1 another owner has the key, and it never expires; -2 nobody has the key, or not what
--            was expected; -3 the owner was buried; -4 another policy; n > 0 another owner has the key for
--            n more milliseconds; a string: the error of the operation, which granted nothing
--            of a tick: -5 it has passed; -6 too early; -7 too late; -8 it may have been forgotten
--            for read: the same of the lock, and 0 if nobody has it
--   second   the counter, or for inspect what INFO says; for claim the counter and the newest run, or by how many
--            milliseconds it is too early or too late; for read the runs
--
-- All is read first, in three commands; all writes are made at once, in the order of the operations. An error
-- ends its own operation only, so that one bad key cannot hide what became of the others, and nothing is
-- raised after the first write: a call that fails as a whole has done nothing.
-- A key is never created by an extension, and never changed without comparing its owner. What is granted is
-- counted before it is written: a counter that is too high does no harm.
-- Letting a key go needs nothing but its owner: neither the mark nor memory nor a vote.
--
-- The runs of a job are lines, the newest first: tick in milliseconds, token, text. The first one's tick is the
-- watermark: no tick up to it can be claimed. The horizon is the node's time, in milliseconds, from which on it
-- remembers what was claimed, if it ever lost its data.
--
-- Counters and ticks are strings of 16 digits, which compare as they are. Where one must be calculated, doubles are exact
-- below 2^53, but tostring() and `..` lose digits above 10^14.
local KEYS, ARGV, try = KEYS, ARGV, redis.pcall
local mark, fence, policy = KEYS[1], KEYS[#KEYS], ARGV[1]
local GREATEST = '9007199253692416' -- 2^53 - 2^20
-- A value as long as this makes the server find counters by their hash, and not by going through all of them.
local LAYOUT = '.................................................................'
local DAMAGED = 'the mark is damaged: delete the key to begin a quarantine'
local MISCOUNTED = 'the fencing counters are damaged'
local ILLEGIBLE = 'what is remembered of the job is damaged: delete the key, and its last tick may start again'
local BLURRED = 'the horizon is damaged: delete the key and the mark to begin a quarantine'
local DIGITS = '^' .. string.rep('%d', 16) .. '$'
-- How many runs of a job are remembered.
local MOST_RUNS = 10

-- The error of a command with its name, for not every server says which right is missing.
local function failed(result, command)
  return type(result) == 'table' and result.err and result.err .. ' (' .. command .. ')'
end

-- The newest of a job's runs, and its tick, unless the value is something else.
local function newest(runs)
  local tick, token = string.match(runs, '^(%d+) (%d+) ')
  if tick and #tick == 16 and #token == 16 then return string.match(runs, '^[^\n]+'), tick end
end

-- The owner of each key, by its place in KEYS; the first is the mark.
local owners = try('MGET', unpack(KEYS, 1, #KEYS - 1))
if owners.err then return {err = failed(owners, 'MGET')} end

-- The counters by their place, the first of which is the floor of the others.
local needed = tonumber(ARGV[4])
local counters, uncounted
if needed > 0 then
  counters = try('HMGET', fence, unpack(ARGV, 5, 4 + needed))
  uncounted = counters.err and failed(counters, 'HMGET')
  if not uncounted then
    local floor = counters[1] or '0000000000000000'
    for place = 1, needed do
      local stored = counters[place] or floor
      if #stored ~= 16 then uncounted = MISCOUNTED end
      counters[place] = stored > floor and stored or floor
    end
  end
end

-- What occurs twice stands for its first place.
local key_place, counter_place
if ARGV[3] ~= '' then
  local function first_places(list, from, to)
    local seen, places = {}, {}
    for at = from, to do
      seen[list[at]] = seen[list[at]] or #places + 1
      places[#places + 1] = seen[list[at]]
    end
    return places
  end
  if ARGV[3] ~= 'counters' then key_place = first_places(KEYS, 1, #KEYS) end
  if ARGV[3] ~= 'keys' then counter_place = first_places(ARGV, 5, 4 + needed) end
end

-- Where the node stands.
local state, detail, micros, since, run, refused = -1, 0, 0, 0, nil, nil
if policy ~= '' then
  local info = try('INFO', 'server')
  refused = type(info) == 'table' and failed(info, 'INFO')
  if not refused then
    -- Looking for a pattern in all of it would take longer than all the rest of the call.
    local at = string.find(info, 'run_id:', 1, true) or 1
    run = string.sub(info, at + 7, string.find(info, '\r', at, true) - 1)
    -- As the server read its clock when the call began.
    at = string.find(info, 'server_time_usec:', at, true) or 1
    micros = tonumber(string.sub(info, at + 17, string.find(info, '\r', at, true) - 1))
    local found, voting = owners[1], 'voting ' .. run .. ' ' .. policy
    if found == voting and micros then
      state = 1
    else
      local length, step, trusts = string.match(ARGV[2], '^(%d+) (%d+) (%d)$')
      local word, its_run, its_policy, rest = string.match(found or '', '^(%l+) (%x+) (%S+)(.*)$')
      local began, aged, last = string.match(rest or '', '^ (%d+) (%d+) (%d+)$')
      local now, text = math.floor((micros or 0) / 1000), nil
      if not (micros and string.find(run, '^%x+$')) then
        refused = 'INFO does not say run_id and server_time_usec'
      elseif found and not (word == 'voting' and rest == '' or word == 'quarantined' and began) then
        refused = DAMAGED
      elseif found and its_policy ~= policy then
        state, detail, refused = 3, its_policy, -4
      elseif word == 'voting' and trusts == '1' then
        state, text = 1, voting
      else
        if found and (its_run == run or trusts == '1') then
          -- A clock that was set forward counts as one step, and one that was set back as none.
          aged = aged + math.max(0, math.min(now - last, tonumber(step)))
          since = tonumber(began)
        else
          aged, since = 0, micros
        end
        state, detail = 0, length - aged
        if detail <= 0 then state, detail = 2, 0 end
        text = string.format('quarantined %s %s %.0f %.0f %.0f', run, policy, since, aged, now)
      end
      if text then
        -- A mark of another type is not overwritten.
        local set = found and try('SET', mark, text) or try('SET', mark, text, 'NX')
        refused = failed(set, 'SET') or (not set and DAMAGED)
      end
    end
  end
  if type(refused) == 'string' then state, detail, micros, since = refused, 0, 0, 0 end
end

local replies = {state, detail, micros, since}
local reply_at, op, next_key, next_counter = 5, 5 + needed, 2, 1
while ARGV[op] do
  local verb, owner, ttl, key = ARGV[op], ARGV[op + 1], ARGV[op + 2], KEYS[next_key]
  local place, tomb = next_key, next_key + 1
  if key_place then place, tomb = key_place[place], key_place[tomb] end
  local found = owners[place]

  -- Decided first: the reply if there is nothing to do, or else what to count, what to remember of a job, and what
  -- to do with the key.
  local reply, second, command, counter_at, counter, token = nil, 0, nil, nil, nil, nil
  local note, note_at, blesses = nil, nil, false
  if verb == 'acquire' then
    next_counter = next_counter + 1
    counter_at = counter_place and counter_place[next_counter] or next_counter
    second = counters[counter_at] or 0
    if refused then
      reply = refused
    elseif owners[tomb] then
      reply = -3
    elseif uncounted then
      reply = uncounted
    elseif found then
      command = 'PTTL'
    else
      command, token, counter = 'SET', ARGV[op + 3], ARGV[op + 4]
    end
    op, next_key = op + 5, next_key + 2
  elseif verb == 'release' or verb == 'bury' then
    if not found then
      reply = -2
    elseif found == owner then
      command = 'DEL'
    else
      command = 'PTTL'
    end
    if verb == 'release' then
      op, next_key = op + 2, next_key + 1
    else
      op, next_key = op + 3, next_key + 2
    end
  elseif verb == 'extend' or verb == 'write_back' or verb == 'heal' then
    if verb ~= 'extend' then
      next_counter = next_counter + 1
      counter_at = counter_place and counter_place[next_counter] or next_counter
      counter = ARGV[op + 3]
    end
    if refused then
      reply = refused
    elseif verb == 'heal' and owners[tomb] then
      reply = -3
    elseif found == owner then
      command = 'PEXPIRE'
    elseif found then
      command, counter = 'PTTL', nil
    elseif verb == 'heal' then
      command = 'SET'
    else
      reply = -2
    end
    op = op + (verb == 'extend' and 3 or 4)
    next_key = next_key + (verb == 'heal' and 2 or 1)
  elseif verb == 'claim' then
    next_counter = next_counter + 1
    counter_at = counter_place and counter_place[next_counter] or next_counter
    second = counters[counter_at] or 0
    local tick, early, late = ARGV[op + 4], ARGV[op + 5], ARGV[op + 6]
    local runs_at, horizon_at = next_key + 2, next_key + 3
    if key_place then runs_at, horizon_at = key_place[runs_at], key_place[horizon_at] end
    local runs, horizon, now = owners[runs_at], owners[horizon_at], math.floor(micros / 1000)
    local buried, last, watermark = owners[tomb], nil, nil
    if runs then last, watermark = newest(runs) end
    if refused then
      reply = refused
    elseif uncounted then
      reply = uncounted
    elseif buried then
      reply = -3
    elseif runs and not last then
      reply = ILLEGIBLE
    elseif last and watermark >= tick then
      reply, second = -5, last
    elseif tick - early > now then
      reply, second = -6, tick - early - now
    elseif tick + late < now then
      reply, second = -7, now - tick - late
    elseif horizon and not string.find(horizon, DIGITS) then
      reply = BLURRED
    elseif horizon and tick - early <= tonumber(horizon) then
      reply = -8
    elseif found then
      command = 'PTTL'
    else
      command, token, counter, note = 'SET', ARGV[op + 3], ARGV[op + 3], last
    end
    op, next_key = op + 7, next_key + 4
  elseif verb == 'commit' then
    next_counter = next_counter + 1
    counter_at = counter_place and counter_place[next_counter] or next_counter
    counter, note_at = ARGV[op + 3], next_key + 1
    if key_place then note_at = key_place[note_at] end
    if refused then
      reply = refused
    elseif found == owner then
      local tick, runs, last, watermark = ARGV[op + 4], owners[note_at], nil, nil
      local run = tick .. ' ' .. counter .. ' '
      if runs then last, watermark = newest(runs) end
      command = 'PEXPIRE'
      if runs and not last then
        reply = ILLEGIBLE
      elseif not last or watermark < tick then
        note = run .. ARGV[op + 5] .. (runs and '\n' .. runs or '')
        local cut = 0
        for _ = 1, MOST_RUNS do cut = cut and string.find(note, '\n', cut + 1, true) end
        if cut then note = string.sub(note, 1, cut - 1) end
      elseif string.sub(last, 1, #run) ~= run then
        reply, second = -5, last
      end
    elseif found then
      command, counter = 'PTTL', nil
    else
      reply = -2
    end
    op, next_key = op + 6, next_key + 2
  elseif verb == 'record' then
    note_at = place
    local run = ARGV[op + 1] .. ' ' .. ARGV[op + 2] .. ' '
    local at = found and string.find('\n' .. found, '\n' .. run, 1, true)
    if refused then
      reply = refused
    elseif at then
      local rest = string.find(found, '\n', at, true) or #found + 1
      note = string.sub(found, 1, at - 1) .. run .. ARGV[op + 3] .. string.sub(found, rest)
    else
      reply = -2
    end
    op, next_key = op + 4, next_key + 1
  elseif verb == 'read' then
    local runs_at = next_key + 1
    if key_place then runs_at = key_place[runs_at] end
    second = owners[runs_at] or ''
    if refused then
      reply = refused
    elseif second ~= '' and not newest(second) then
      reply = ILLEGIBLE
    elseif found then
      command = 'PTTL'
    else
      reply = 0
    end
    op, next_key = op + 1, next_key + 2
  elseif verb == 'open' then
    local horizon = ARGV[op + 3]
    blesses, note_at = horizon == '', place
    if refused then
      reply = refused
    elseif string.format('%.0f', since) ~= ARGV[op + 2] then
      reply = -2
    elseif state == 2 or (state == 0 and blesses) then
      counter_at, counter = 1, ARGV[op + 1]
      if found and not string.find(found, DIGITS) then
        reply = BLURRED
      elseif not blesses and not (found and found >= horizon) then
        -- Only a node that nobody vouches for may have forgotten what was claimed.
        note = horizon
      end
    else
      reply = -2
    end
    op, next_key = op + 4, next_key + 1
  else
    -- A replica that cannot look at its mark says what it is all the same.
    reply = verb ~= 'inspect' and type(refused) == 'string' and refused or 0
    if verb == 'survey' and reply == 0 then
      local all = try('HVALS', fence)
      reply, second = failed(all, 'HVALS') or 0, '0'
      for _, stored in ipairs(all) do
        if #stored == 16 then
          second = stored > second and stored or second
        elseif stored ~= LAYOUT then
          reply = MISCOUNTED
        end
      end
      -- No lease has been given such a number, so it says nothing about those that were.
      if second > GREATEST then reply = 'the fencing counter is beyond its range' end
    elseif verb == 'inspect' and reply == 0 then
      second = ''
      for section in string.gmatch('server replication memory persistence cluster', '%l+') do
        local info = try('INFO', section)
        reply = failed(info, 'INFO') or reply
        if type(info) == 'string' then second = second .. info end
      end
    end
    op = op + 1
  end

  -- What was proposed may be too small.
  if token and #counter <= 16 and token <= second then
    local reserved = counter - token
    token = string.format('%016.0f', second + 1)
    counter = string.format('%016.0f', token + reserved)
  end

  if counter and not reply then
    if uncounted then
      reply = uncounted
    elseif #counter > 16 or counter > GREATEST then
      reply = 'the fencing counter is beyond its range'
    elseif counter > counters[counter_at] then
      local set = try('HSET', fence, ARGV[4 + counter_at], counter)
      if type(set) == 'table' then reply = failed(set, 'HSET') else counters[counter_at] = counter end
    end
  end

  if note and note_at and not reply then
    -- A key of another type is not overwritten.
    local set = owners[note_at] and try('SET', KEYS[note_at], note) or try('SET', KEYS[note_at], note, 'NX')
    if not set then
      reply = verb == 'open' and BLURRED or ILLEGIBLE
    elseif set.err then
      reply = failed(set, 'SET')
    else
      owners[note_at] = note
    end
  end

  if reply then
    command = nil
  elseif command == 'SET' then
    local set = try('SET', key, owner, 'NX', 'PX', ttl)
    if not set then
      -- A key of another type has no owner that could be compared.
      command = 'PTTL'
    elseif set.err then
      reply = failed(set, 'SET')
    else
      reply, second, owners[place] = 0, token or second, owner
      if verb == 'claim' and note then second = second .. ' ' .. note end
    end
  elseif command == 'PEXPIRE' then
    local set = try('PEXPIRE', key, ttl)
    reply = set == 1 and 0 or failed(set, 'PEXPIRE') or -2
  elseif command == 'DEL' then
    reply = failed(try('DEL', key), 'DEL') or 0
    if reply == 0 then owners[place] = false end
  elseif verb == 'record' then
    reply = 0
  elseif verb == 'open' then
    for at = 2, needed do
      if counters[at] < counters[1] then counters[at] = counters[1] end
    end
    reply = failed(try('HSET', fence, 'layout', LAYOUT), 'HSET')
      or failed(try('SET', mark, 'voting ' .. run .. ' ' .. policy), 'SET')
      or 0
  end
  if command == 'PTTL' then
    local remaining = try('PTTL', key)
    -- A key in its last millisecond is still another's.
    reply = failed(remaining, 'PTTL') or (remaining == 0 and 1) or remaining
  end
  if verb == 'bury' then
    -- The key was let go even if there is no memory for the tomb.
    reply = failed(try('SET', KEYS[tomb], owner, 'PX', ttl), 'SET') or reply
    owners[tomb] = owner
  end

  replies[reply_at], replies[reply_at + 1] = reply, second
  reply_at = reply_at + 2
end
return replies
