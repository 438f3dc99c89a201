-- What a node does for one call: a list of operations, in order and in one atomic step.
--
-- KEYS[1], KEYS[2]   the node's mark and its fencing counters in this namespace
-- KEYS[3..]          the keys of the operations, in order: the lock key, and for acquire, heal and bury
--                    the owner's tomb after it
-- ARGV[1]            the namespace's policy; empty if keys are only let go, for which nobody looks at the mark
-- ARGV[2]            the quarantine's length and step in milliseconds, and 1 if a node that still has its data
--                    may vote after a restart
-- ARGV[3]            1 if a key or a counter occurs twice
-- ARGV[4], ARGV[5..] how many counters are needed, and which: `floor`, and then the shard of each acquire,
--                    write_back and heal, in order
-- then, for each operation, its verb and
--   acquire            owner, time to live in milliseconds, first and last of the tokens proposed
--   write_back, heal   owner, time to live, counter
--   extend, bury       owner, time to live
--   release            owner
--   open               floor, beginning of the quarantine, 1 if it blesses
--   tick, inspect, survey
--
-- Answer: state, detail, time in microseconds, beginning of the quarantine in microseconds; then two for
-- each operation.
--   state    1 votes; 0 quarantined, for `detail` more milliseconds; 2 aged: waits to be opened;
--            3 another policy, which is `detail`; -1 not looked at; a string: the error of the look
--   first    0 done; -1 another owner has the key, and it never expires; -2 nobody has the key, or not what
--            was expected; -3 the owner was buried; -4 another policy; n > 0 another owner has the key for
--            n more milliseconds; a string: the error of the operation, which granted nothing
--   second   the counter, or for inspect what INFO says
--
-- All is read first, in three commands; all writes are made at once, in the order of the operations. An error
-- ends its own operation only, so that one bad key cannot hide what became of the others, and nothing is
-- raised after the first write: a call that fails as a whole has done nothing.
-- A key is never created by an extension, and never changed without comparing its owner. What is granted is
-- counted before: a counter that is too high does no harm.
-- Letting a key go needs nothing but its owner: neither the mark nor memory nor a vote.
--
-- Counters are strings of 16 digits, which compare as they are. Where one must be calculated, doubles are exact
-- below 2^53, but tostring() and `..` lose digits above 10^14.
local KEYS, ARGV, try = KEYS, ARGV, redis.pcall
local mark, fence, policy = KEYS[1], KEYS[2], ARGV[1]
local GREATEST = '9007199253692416' -- 2^53 - 2^20
-- A value as long as this makes the server find counters by their hash, and not by going through all of them.
local LAYOUT = '.................................................................'
local DAMAGED = 'the mark is damaged: delete the key to begin a quarantine'
local MISCOUNTED = 'the fencing counters are damaged'

-- The error of a command with its name, for not every server says which right is missing.
local function failed(result, command)
  return type(result) == 'table' and result.err and result.err .. ' (' .. command .. ')'
end

-- The owner of each key, by its place in KEYS. The counters' key is no string, so it has none.
local owners = try('MGET', unpack(KEYS))
if owners.err then return {err = failed(owners, 'MGET')} end

-- The counters by their place, the first of which is the floor of the others.
local needed = tonumber(ARGV[4])
local counters, uncounted = {}, nil
if needed > 0 then
  counters = try('HMGET', fence, unpack(ARGV, 5, 4 + needed))
  uncounted = failed(counters, 'HMGET')
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
if ARGV[3] == '1' then
  local seen
  seen, key_place = {}, {}
  for place = 3, #KEYS do
    seen[KEYS[place]] = seen[KEYS[place]] or place
    key_place[place] = seen[KEYS[place]]
  end
  seen, counter_place = {}, {}
  for place = 1, needed do
    local name = ARGV[4 + place]
    seen[name] = seen[name] or place
    counter_place[place] = seen[name]
  end
end

-- Where the node stands.
local state, detail, micros, since, run, refused = -1, 0, 0, 0, nil, nil
if policy ~= '' then
  local info, time = try('INFO', 'server'), try('TIME')
  refused = failed(info, 'INFO') or failed(time, 'TIME')
  if not refused then
    -- Looking for the name first is four times as fast as a pattern.
    run = string.match(info, '^run_id:(%x+)', string.find(info, 'run_id:', 1, true)) or ''
    micros = time[1] * 1000000 + time[2]
    local found, voting = owners[1], 'voting ' .. run .. ' ' .. policy
    if found == voting then
      state = 1
    else
      local length, step, trusts = string.match(ARGV[2], '^(%d+) (%d+) (%d)$')
      local word, its_run, its_policy, rest = string.match(found or '', '^(%l+) (%x+) (%S+)(.*)$')
      local began, aged, last = string.match(rest or '', '^ (%d+) (%d+) (%d+)$')
      local now, text = math.floor(micros / 1000), nil
      if run == '' then
        refused = 'INFO does not say run_id'
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

local function held(key)
  local remaining = try('PTTL', key)
  -- A key in its last millisecond is still another's.
  return failed(remaining, 'PTTL') or (remaining == 0 and 1) or remaining
end

-- Raises a counter to what is at least granted; what is wrong, if it cannot.
local function count(place, counter)
  if uncounted then return uncounted end
  if #counter > 16 or counter > GREATEST then return 'the fencing counter is beyond its range' end
  if counter > counters[place] then
    local set = try('HSET', fence, ARGV[4 + place], counter)
    if type(set) == 'table' then return failed(set, 'HSET') end
    counters[place] = counter
  end
end

local replies = {state, detail, micros, since}
local reply_at, op, next_key, next_counter = 5, 5 + needed, 3, 1
while ARGV[op] do
  local verb, owner, ttl, key = ARGV[op], ARGV[op + 1], ARGV[op + 2], KEYS[next_key]
  local place, tomb = next_key, next_key + 1
  if key_place then place, tomb = key_place[place], key_place[tomb] end
  local found = owners[place]
  local reply, second, takes, token = 0, 0, false, nil
  if verb == 'acquire' then
    next_counter = next_counter + 1
    local counter_at = counter_place and counter_place[next_counter] or next_counter
    second = counters[counter_at] or 0
    if refused then
      reply = refused
    elseif owners[tomb] then
      reply = -3
    elseif found and not uncounted then
      reply = held(key)
    else
      local first, last = ARGV[op + 3], ARGV[op + 4]
      if #last <= 16 and not uncounted and first <= second then
        local reserved = last - first
        first = string.format('%016.0f', second + 1)
        last = string.format('%016.0f', first + reserved)
      end
      reply = count(counter_at, last)
      takes, token = not reply, first
    end
    op, next_key = op + 5, next_key + 2
  elseif verb == 'release' or verb == 'bury' then
    if not found then
      reply = -2
    elseif found ~= owner then
      reply = held(key)
    else
      reply = failed(try('DEL', key), 'DEL') or 0
      if reply == 0 then owners[place] = false end
    end
    op, next_key = op + 2, next_key + 1
    if verb == 'bury' then
      -- The key was let go even if there is no memory for the tomb.
      reply = failed(try('SET', KEYS[tomb], owner, 'PX', ttl), 'SET') or reply
      owners[tomb] = owner
      op, next_key = op + 1, next_key + 1
    end
  elseif verb == 'extend' or verb == 'write_back' or verb == 'heal' then
    local heals, counter_at = verb == 'heal', nil
    if verb ~= 'extend' then
      next_counter = next_counter + 1
      counter_at = counter_place and counter_place[next_counter] or next_counter
    end
    if refused then
      reply = refused
    elseif heals and owners[tomb] then
      reply = -3
    elseif not found and not heals then
      reply = -2
    elseif found and found ~= owner then
      reply = held(key)
    else
      reply = counter_at and count(counter_at, ARGV[op + 3])
      if not reply and found then
        local set = try('PEXPIRE', key, ttl)
        reply = set == 1 and 0 or failed(set, 'PEXPIRE') or -2
      end
      takes = not reply
    end
    op, next_key = op + (counter_at and 4 or 3), next_key + (heals and 2 or 1)
  elseif verb == 'open' then
    if refused then
      reply = refused
    elseif string.format('%.0f', since) ~= ARGV[op + 2]
      or not (state == 2 or (state == 0 and ARGV[op + 3] == '1')) then
      reply = -2
    else
      reply = count(1, ARGV[op + 1])
      if not reply then
        for at = 2, needed do
          if counters[at] < counters[1] then counters[at] = counters[1] end
        end
        reply = failed(try('HSET', fence, 'layout', LAYOUT), 'HSET')
          or failed(try('SET', mark, 'voting ' .. run .. ' ' .. policy), 'SET')
          or 0
      end
    end
    op = op + 4
  else
    -- A replica that cannot look at its mark says what it is all the same.
    reply = verb ~= 'inspect' and type(refused) == 'string' and refused or 0
    if verb == 'survey' and reply == 0 then
      local found = try('HVALS', fence)
      reply, second = failed(found, 'HVALS') or 0, '0'
      for _, counter in ipairs(found) do
        if #counter == 16 then
          second = counter > second and counter or second
        elseif counter ~= LAYOUT then
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
  if takes then
    -- A key of another type has no owner that could be compared.
    local set = try('SET', key, owner, 'NX', 'PX', ttl)
    reply = failed(set, 'SET') or (set and 0) or held(key)
    if reply == 0 then owners[place], second = owner, token or second end
  end
  replies[reply_at], replies[reply_at + 1] = reply, second
  reply_at = reply_at + 2
end
return replies
