-- What a node does for one call: a list of operations, in order and in one atomic step.
--
-- KEYS[1], KEYS[2]   the node's mark and its fencing counters in this namespace
-- KEYS[3..]          the keys of the operations, in order:
--                      acquire, heal, bury    the lock key, the owner's tomb
--                      extend, release        the lock key
-- ARGV[1..4]         the namespace's policy; the quarantine's length and step in milliseconds; 1 if a node
--                    that still has its data may vote after a restart
-- ARGV[5..]          six for each operation: verb, owner, time to live in milliseconds, shard, counter,
--                    tokens to reserve; an open has its floor, the beginning of the quarantine and whether
--                    it blesses in the last three
--
-- Answer: state, detail, time in microseconds, beginning of the quarantine in microseconds; then two for
-- each operation.
--   state    1 votes; 0 quarantined, for `detail` more milliseconds; 2 aged: waits to be opened;
--            3 another policy, which is `detail`; -1 not looked at; a string: the error of the look
--   first    0 done; -1 another owner has the key, and it never expires; -2 nobody has the key, or not what
--            was expected; -3 the owner was buried; -4 another policy; n > 0 another owner has the key for
--            n more milliseconds; a string: the error of the operation, which changed nothing;
--            for inspect, what INFO says, though the look ended with an error
--   second   the counter
--
-- An error ends its own operation only, so that one bad key cannot hide what became of the others.
-- A key is never created by an extension, and never changed without comparing its owner.
-- Letting a key go needs nothing but its owner: neither the mark nor memory nor a vote.
local WIDTH = 6
local MAX_COUNTER = 9007199254740992 - 1048576 -- 2^53 - 2^20: doubles are exact below 2^53
local RELEASES = {release = true, bury = true}
local LOOKS = {tick = true, inspect = true, survey = true}
local mark, fence = KEYS[1], KEYS[2]
local ops = (#ARGV - 4) / WIDTH

-- Never tostring() or `..` on a number: both lose digits above 10^14.
local function exact(number)
  return string.format('%.0f', number)
end

local function failed(result)
  return type(result) == 'table' and result.err
end

-- What caught errors look like differs between versions.
local function message(caught)
  return type(caught) == 'table' and caught.err or tostring(caught)
end

local function begin(run, policy, micros, now)
  local text = 'quarantined ' .. run .. ' ' .. policy .. ' ' .. exact(micros) .. ' 0 ' .. exact(now)
  redis.call('SET', mark, text)
  return micros, 0
end

-- Where the node stands: state, detail, time, beginning of the quarantine.
local function look()
  local policy, length, step, trusts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local time = redis.call('TIME')
  local micros = time[1] * 1000000 + time[2]
  local found = redis.call('GET', mark)
  local voting = 'voting ' .. run .. ' ' .. policy
  if found == voting then return 1, 0, micros, 0 end
  local now = math.floor(micros / 1000)
  local since, aged
  if not found then
    since, aged = begin(run, policy, micros, now)
  else
    local word, its_run, its_policy, rest = string.match(found, '^(%l+) (%x+) (%S+)(.*)$')
    if not word then error({err = 'the mark is damaged: delete the key to begin a quarantine'}) end
    if its_policy ~= policy then return 3, its_policy, micros, 0 end
    if its_run ~= run and not trusts then
      since, aged = begin(run, policy, micros, now)
    elseif word == 'voting' then
      redis.call('SET', mark, voting)
      return 1, 0, micros, 0
    else
      local began, before, last = string.match(rest, '^ (%d+) (%d+) (%d+)$')
      since, aged = tonumber(began), tonumber(before)
      -- A clock that was set forward counts as one step, and one that was set back as none.
      aged = aged + math.max(0, math.min(now - tonumber(last), step))
      redis.call('SET', mark, 'quarantined ' .. run .. ' ' .. policy .. ' ' .. began .. ' '
        .. exact(aged) .. ' ' .. exact(now))
    end
  end
  if aged >= length then return 2, 0, micros, since end
  return 0, length - aged, micros, since
end

-- What the operations need, each read once.
local needs_look, shards = ops == 0, {}
for i = 5, #ARGV, WIDTH do
  local verb = ARGV[i]
  if not RELEASES[verb] then
    needs_look = true
    if verb == 'acquire' or verb == 'heal' or (verb == 'extend' and ARGV[i + 4] ~= '0') then
      shards[#shards + 1] = ARGV[i + 3]
    end
  end
end

local state, detail, time, since = -1, 0, 0, 0
if needs_look then
  local looked
  looked, state, detail, time, since = pcall(look)
  if not looked then state, detail, time, since = message(state), 0, 0, 0 end
end

local owners = {}
if #KEYS > 2 then
  local found = redis.call('MGET', unpack(KEYS, 3))
  for i = 1, #found do owners[KEYS[i + 2]] = found[i] end
end

local counters, floor, raised, broken = {}, 0, {}, nil
if #shards > 0 then
  local found = redis.pcall('HMGET', fence, 'floor', unpack(shards))
  broken = failed(found)
  if not broken then
    floor = tonumber(found[1]) or 0
    for i, shard in ipairs(shards) do
      counters[shard] = math.max(tonumber(found[i + 1]) or 0, floor)
    end
  end
end

local replies = {state, detail, time, since}
local doomed, released, taken = {}, {}, {}

local function held(key)
  local remaining = redis.pcall('PTTL', key)
  -- A key in its last millisecond is still another's.
  if remaining == 0 then return 1 end
  return failed(remaining) or remaining
end

local function take(key, owner, ttl)
  local set
  if released[key] then
    set = redis.pcall('SET', key, owner, 'PX', ttl)
  else
    -- A key of another type has no owner that could be compared.
    set = redis.pcall('SET', key, owner, 'NX', 'PX', ttl)
  end
  if failed(set) then return set.err end
  if not set then return held(key) end
  owners[key], released[key] = owner, nil
  return 0
end

local function raise(shard, counter)
  if counter > counters[shard] then
    counters[shard], raised[shard] = counter, true
  end
end

local function let_go(key, owner)
  local found = owners[key]
  if not found then return -2 end
  if found ~= owner then return held(key) end
  owners[key], released[key] = false, true
  return 0
end

local function open(i)
  local began = ARGV[i + 4]
  if exact(since) ~= began or not (state == 2 or (state == 0 and ARGV[i + 5] == '1')) then return -2 end
  local up_to = tonumber(ARGV[i + 3])
  if up_to > MAX_COUNTER then return 'the fencing counter is beyond its range' end
  if up_to > (tonumber(redis.call('HGET', fence, 'floor')) or 0) then
    redis.call('HSET', fence, 'floor', exact(up_to))
  end
  floor = math.max(floor, up_to)
  for shard, counter in pairs(counters) do counters[shard] = math.max(counter, up_to) end
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  redis.call('SET', mark, 'voting ' .. run .. ' ' .. ARGV[1])
  return 0
end

local function greatest()
  local most = 0
  for _, value in ipairs(redis.call('HVALS', fence)) do most = math.max(most, tonumber(value)) end
  -- What this call has counted is stored when it ends.
  for _, counter in pairs(counters) do most = math.max(most, counter) end
  return most
end

local function inspect()
  return redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
    .. redis.call('INFO', 'memory') .. redis.call('INFO', 'persistence')
    .. redis.call('INFO', 'cluster')
end

local next_key = 3
for op = 1, ops do
  local i = 5 + (op - 1) * WIDTH
  local verb, owner, ttl, shard = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local reply, counter = 0, 0
  local key = KEYS[next_key]
  local tomb
  if verb == 'acquire' or verb == 'heal' or verb == 'bury' then
    tomb = KEYS[next_key + 1]
    next_key = next_key + 2
  elseif verb == 'extend' or verb == 'release' then
    next_key = next_key + 1
  end
  if RELEASES[verb] then
    reply = let_go(key, owner)
    if tomb then
      local buried = redis.pcall('SET', tomb, owner, 'PX', ttl)
      if failed(buried) then reply = buried.err end
      owners[tomb] = owner
    end
  elseif type(state) == 'string' and verb ~= 'inspect' then
    reply = state
  elseif state == 3 and not LOOKS[verb] then
    reply = -4
  elseif tomb and owners[tomb] then
    reply = -3
  elseif verb == 'acquire' then
    counter = counters[shard] or 0
    if broken then
      reply = broken
    elseif owners[key] then
      reply = held(key)
    else
      local first = math.max(counter + 1, tonumber(ARGV[i + 4]))
      local last = first + tonumber(ARGV[i + 5]) - 1
      if last > MAX_COUNTER then
        reply = 'the fencing counter is beyond its range'
      else
        reply = take(key, owner, ttl)
        if reply == 0 then
          taken[#taken + 1] = {at = 3 + 2 * op, key = key}
          raise(shard, last)
          counter = first
        end
      end
    end
  elseif verb == 'extend' or verb == 'heal' then
    local found, least = owners[key], tonumber(ARGV[i + 4])
    if found and found ~= owner then
      reply = held(key)
    elseif not found and verb == 'extend' then
      reply = -2
    elseif least > 0 and broken then
      reply = broken
    elseif least > MAX_COUNTER then
      reply = 'the fencing counter is beyond its range'
    else
      if found then
        local set = redis.pcall('PEXPIRE', key, ttl)
        reply = failed(set) or 0
      else
        reply = take(key, owner, ttl)
      end
      if reply == 0 and least > 0 then
        taken[#taken + 1] = {at = 3 + 2 * op, key = not found and key}
        raise(shard, least)
      end
    end
  elseif verb == 'tick' then
    reply = 0
  else
    local done, result = pcall(verb == 'open' and open or verb == 'survey' and greatest or inspect, i)
    reply = done and result or message(result)
    if verb == 'survey' and done then reply, counter = 0, result end
  end
  replies[3 + 2 * op], replies[4 + 2 * op] = reply, counter
end

for key in pairs(released) do doomed[#doomed + 1] = key end
if #doomed > 0 then redis.call('DEL', unpack(doomed)) end

local values = {}
for shard in pairs(raised) do
  values[#values + 1] = shard
  values[#values + 1] = exact(counters[shard])
end
if #values > 0 then
  local set = redis.pcall('HSET', fence, unpack(values))
  if failed(set) then
    -- What was not counted was not granted.
    for _, op in ipairs(taken) do
      if op.key then redis.call('DEL', op.key) end
      replies[op.at], replies[op.at + 1] = set.err, 0
    end
  end
end

return replies
