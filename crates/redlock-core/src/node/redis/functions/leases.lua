-- What nodes are asked for all the time, in as few commands as there can be: acquire, release and extend.
--
-- KEYS and ARGV are those of the script, and what a call comes to is the same. The acquires come first. Whatever is out of
-- the ordinary is left to the script before anything is written: a node that does not vote, a key that occurs twice, a
-- counter that is damaged or ahead of what is proposed, and a command that fails.
--
-- The answer is that of the script, too, but for extensions, which say whether a caller was refused the key. It is
-- another answer if every operation was done, with the first token that it proposed, and no caller was refused a key.
-- Then it is one text, which costs less than a list: the node's time in seconds, the microseconds behind it, and the
-- run; or nothing, if there was no look at the mark.
--
-- All is read first, then all is counted by one command, and all released keys are deleted by one. No key occurs
-- twice, so nothing but the counters depends on the order of the operations.

-- The lists of the call that runs: counters with their shards, keys to delete, and the extensions, each with the place of
-- its operation in ARGV and of its key in KEYS.
-- They outlive the call, so that no call has to grow them again, and they still have what calls before it put there. So a
-- call counts from the beginning what it puts there, and reads no further.
local counted, dropped, kept = {}, {}, {}

-- The last value of each counter that was found to be a number, or written here. Mostly a counter still has it, and a look
-- at each of its characters would cost a call a twentieth.
local numbers = {}

-- Whether a counter's value is a number of 16 digits.
local function is_number(shard, value)
  if value == numbers[shard] then return true end
  if #value ~= 16 or string.find(value, '%D') then return false end
  numbers[shard] = value
  return true
end

-- How long a key stays that another owner has; in its last millisecond it is still another's. Nothing, if that cannot be
-- told.
local function remaining(key)
  local stays = redis.pcall('PTTL', key)
  if type(stays) == 'table' then return nil end
  return stays == 0 and 1 or stays
end

local function leases(KEYS, ARGV)
  local try, policy, fence = redis.pcall, ARGV[1], KEYS[#KEYS]
  if ARGV[3] == 'keys' or ARGV[3] == 'both' then return look(KEYS, ARGV) end
  local owners = of_others(KEYS) or try('MGET', unpack(KEYS, 1, #KEYS - 1))
  if owners.err then return look(KEYS, ARGV) end
  local time
  if policy ~= '' then
    time = votes(owners[1], policy) and try('TIME')
    if not time or time.err then return look(KEYS, ARGV) end
  end

  -- What is not simply done, by the place of the operation in ARGV: the reply, and what is behind it.
  local first, second, is_short = {}, {}, true
  local counted, dropped, kept, counts, drops, keeps = counted, dropped, kept, 0, 0, 0

  -- The acquires, as many as there are counters behind the floor, which is the least that each of them is. Where one is
  -- needed twice, the latest value counts.
  local needed = tonumber(ARGV[4])
  local op, place = 5 + needed, 2
  if needed > 0 then
    local counters = try('HMGET', fence, unpack(ARGV, 5, 4 + needed))
    if counters.err then return look(KEYS, ARGV) end
    local floor = counters[1] or '0000000000000000'
    if not is_number('floor', floor) then return look(KEYS, ARGV) end
    local latest = ARGV[3] == 'counters' and {}
    for at = 2, needed do
      local shard, found = ARGV[4 + at], owners[place]
      local stored = latest and latest[shard] or counters[at] or floor
      if stored ~= numbers[shard] and not is_number(shard, stored) then return look(KEYS, ARGV) end
      if stored < floor then stored = floor end
      if owners[place + 1] then
        first[op], second[op], is_short = -3, stored, false
      elseif found then
        dispute(KEYS[place], time[1])
        if #found > 33 then stored = stored .. told(found) end
        first[op], second[op], is_short = remaining(KEYS[place]), stored, false
        if not first[op] then return look(KEYS, ARGV) end
      else
        if ARGV[op + 3] <= stored then return look(KEYS, ARGV) end
        local counter = ARGV[op + 4]
        counted[counts + 1], counted[counts + 2], counts = shard, counter, counts + 2
        numbers[shard] = counter
        if latest then latest[shard] = counter end
      end
      op, place = op + 5, place + 2
    end
  end

  local others, verb = op, ARGV[op]
  while verb do
    local found, is_release = owners[place], verb == 'release'
    if not found then
      first[op], is_short = -2, false
    elseif found ~= ARGV[op + 1] then
      first[op], is_short = remaining(KEYS[place]), false
      if not first[op] then return look(KEYS, ARGV) end
    elseif is_release then
      drops = drops + 1
      dropped[drops] = KEYS[place]
    else
      kept[keeps + 1], kept[keeps + 2], keeps = op, place, keeps + 2
    end
    op, place = op + (is_release and 2 or 3), place + 1
    verb = ARGV[op]
  end

  if counts > 0 and type(try('HSET', fence, unpack(counted, 1, counts))) == 'table' then return look(KEYS, ARGV) end
  if drops > 0 and type(try('DEL', unpack(dropped, 1, drops))) == 'table' then return look(KEYS, ARGV) end
  op, place = 5 + needed, 2
  for _ = 2, needed do
    if is_short or not first[op] then
      local set = try('SET', KEYS[place], ARGV[op + 1], 'NX', 'PX', ARGV[op + 2])
      if not set then
        -- A key of another type has no owner that could be compared. It may end while this runs.
        local stays = try('PTTL', KEYS[place])
        first[op], is_short = type(stays) == 'table' and stays.err .. ' (PTTL)' or stays == 0 and 1 or stays, false
      elseif set.err then
        first[op], is_short = set.err .. ' (SET)', false
      end
    end
    op, place = op + 5, place + 2
  end
  for at = 1, keeps, 2 do
    local op, key = kept[at], KEYS[kept[at + 1]]
    local set = try('PEXPIRE', key, ARGV[op + 2])
    if set ~= 1 then
      first[op], is_short = set == 0 and -2 or set.err .. ' (PEXPIRE)', false
    elseif is_disputed(key, time[1]) then
      is_short = false
    else
      second[op] = 1
    end
  end
  if is_short then return time and time[1] .. ' ' .. time[2] .. ' ' .. run or '' end

  local replies = {-1, 0, 0, 0, ''}
  if time then replies = {1, 0, time[1] * 1000000 + time[2], 0, run} end
  op = 5 + needed
  while ARGV[op] do
    local reply_at = #replies + 1
    local is_acquire = op < others
    replies[reply_at], replies[reply_at + 1] = first[op] or 0, second[op] or is_acquire and ARGV[op + 3] or 0
    op = op + (is_acquire and 5 or ARGV[op] == 'release' and 2 or 3)
  end
  return replies
end
