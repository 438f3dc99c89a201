-- What nodes are asked for all the time, in as few commands as there can be: acquire, release and extend.
--
-- KEYS and ARGV are those of the script, and what a call comes to is the same. Whatever is out of the ordinary is left to
-- the script before anything is written: a node that does not vote, a key that occurs twice, a counter that is damaged or
-- ahead of what is proposed, and a command that fails.
--
-- The answer is that of the script, too, but for extensions, which say whether somebody was refused the key. And it is
-- another if every operation was done, with the first token that it proposed, and nobody was refused a key. Then it is one
-- text, which costs less than a list: the node's time in seconds, the microseconds behind it, and the run; or nothing,
-- if nobody looked at the mark.
--
-- All is read first, then all is counted by one command, and all keys that are let go are deleted by one. No key occurs
-- twice, so nothing but the counters depends on the order of the operations.

-- The lists of the call that runs: its answer, counters with their shards, keys to delete, and keys to take or to keep,
-- which are three numbers each: of the operation in ARGV, of the key in KEYS, and of the reply.
-- They outlive the call, so that no call has to grow them again, and they still have what calls before it put there. So a
-- call counts from the beginning what it puts there, and reads no further.
local replies, counted, dropped, kept = {}, {}, {}, {}

local function leases(KEYS, ARGV)
  local try, policy, fence = redis.pcall, ARGV[1], KEYS[#KEYS]
  if ARGV[3] == 'keys' or ARGV[3] == 'both' then return look(KEYS, ARGV) end
  local owners = try('MGET', unpack(KEYS, 1, #KEYS - 1))
  if owners.err then return look(KEYS, ARGV) end
  local time
  if policy ~= '' then
    time = votes(owners[1], policy) and try('TIME')
    if not time or time.err then return look(KEYS, ARGV) end
  end

  -- The counters of the acquires, behind the floor, which is the least that each of them is. Where one is needed twice,
  -- the latest value counts.
  local needed, counters, floor, latest = tonumber(ARGV[4]), nil, nil, nil
  if needed > 0 then
    counters = try('HMGET', fence, unpack(ARGV, 5, 4 + needed))
    if counters.err then return look(KEYS, ARGV) end
    floor = counters[1] or '0000000000000000'
    if #floor ~= 16 then return look(KEYS, ARGV) end
    latest = ARGV[3] == 'counters' and {}
  end

  local counts, drops, keeps = 0, 0, 0
  local op, place, reply_at, counter_at = 5 + needed, 2, 6, 1
  local verb = ARGV[op]
  while verb do
    local found, reply, second, next_op, next_place = owners[place], 0, 0, op + 3, place + 1
    local is_kept = false
    if verb == 'acquire' then
      counter_at, next_op, next_place = counter_at + 1, op + 5, place + 2
      local shard = ARGV[4 + counter_at]
      second = latest and latest[shard] or counters[counter_at] or floor
      if #second ~= 16 then return look(KEYS, ARGV) end
      if second < floor then second = floor end
      if owners[place + 1] then
        reply = -3
      elseif found then
        reply = nil
        dispute(KEYS[place], time[1])
        if #found > 33 then second = second .. told(found) end
      else
        local token, counter = ARGV[op + 3], ARGV[op + 4]
        if token <= second then return look(KEYS, ARGV) end
        counted[counts + 1], counted[counts + 2], counts = shard, counter, counts + 2
        if latest then latest[shard] = counter end
        second, is_kept = token, true
      end
    else
      if verb == 'release' then next_op = op + 2 end
      if not found then
        reply = -2
      elseif found ~= ARGV[op + 1] then
        reply = nil
      elseif verb == 'release' then
        drops = drops + 1
        dropped[drops] = KEYS[place]
      else
        is_kept = true
      end
    end
    if is_kept then
      kept[keeps + 1], kept[keeps + 2], kept[keeps + 3], keeps = op, place, reply_at, keeps + 3
    elseif not reply then
      -- Another owner has the key; in its last millisecond it is still another's.
      reply = try('PTTL', KEYS[place])
      if type(reply) == 'table' then return look(KEYS, ARGV) end
      if reply == 0 then reply = 1 end
    end
    replies[reply_at], replies[reply_at + 1], reply_at = reply, second, reply_at + 2
    op, place, verb = next_op, next_place, ARGV[next_op]
  end

  if counts > 0 and type(try('HSET', fence, unpack(counted, 1, counts))) == 'table' then return look(KEYS, ARGV) end
  if drops > 0 and type(try('DEL', unpack(dropped, 1, drops))) == 'table' then return look(KEYS, ARGV) end
  local is_short = true
  for at = 1, keeps, 3 do
    local op, key, reply_at = kept[at], KEYS[kept[at + 1]], kept[at + 2]
    if ARGV[op] == 'extend' then
      local set = try('PEXPIRE', key, ARGV[op + 2])
      if set ~= 1 then
        replies[reply_at] = set == 0 and -2 or set.err .. ' (PEXPIRE)'
      elseif is_disputed(key, time[1]) then
        is_short = false
      else
        replies[reply_at + 1] = 1
      end
    else
      local set = try('SET', key, ARGV[op + 1], 'NX', 'PX', ARGV[op + 2])
      if not set then
        -- A key of another type has no owner that could be compared. It may end while this runs.
        local stays = try('PTTL', key)
        replies[reply_at] = type(stays) == 'table' and stays.err .. ' (PTTL)' or stays == 0 and 1 or stays
      elseif set.err then
        replies[reply_at] = set.err .. ' (SET)'
      end
    end
  end

  for at = 6, reply_at - 1, 2 do
    if replies[at] ~= 0 or not is_short then
      -- A list ends where there is nothing.
      replies[1], replies[2], replies[3], replies[4], replies[5], replies[reply_at] = -1, 0, 0, 0, '', nil
      if time then replies[1], replies[3], replies[5] = 1, time[1] * 1000000 + time[2], run end
      return replies
    end
  end
  return time and time[1] .. ' ' .. time[2] .. ' ' .. run or ''
end
