-- What a node does for one call: a list of operations, each on a key of its own.
--
-- KEYS[i]                            the lock key of operation i
-- ARGV[3 * i - 2] .. ARGV[3 * i]     its verb, its owner, its time to live in milliseconds
--
-- Answers, one per operation:
--    0                done
--   -1                another owner has the key, and it never expires
--   -2                nobody has the key
--    n > 0            another owner has the key, for n more milliseconds
--    a string         the error that the operation ended with; it changed nothing
--
-- An error ends its own operation only, so that one bad key cannot hide what became of the others.
-- A key is never created by an extension, and never changed without comparing its owner.
local replies = {}

local function failed(result)
  return type(result) == 'table' and result.err
end

local function held(key)
  local remaining = redis.pcall('PTTL', key)
  -- A key in its last millisecond is still another's.
  if remaining == 0 then return 1 end
  return failed(remaining) or remaining
end

local function acquire(key, owner, ttl)
  local set = redis.pcall('SET', key, owner, 'NX', 'PX', ttl)
  if failed(set) then return set.err end
  if set then return 0 end
  return held(key)
end

local function if_owned(key, owner, command, ...)
  local found = redis.pcall('GET', key)
  if failed(found) then return found.err end
  if not found then return -2 end
  if found ~= owner then return held(key) end
  local done = redis.pcall(command, key, ...)
  return failed(done) or 0
end

for i, key in ipairs(KEYS) do
  local verb, owner, ttl = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  if verb == 'acquire' then
    replies[i] = acquire(key, owner, ttl)
  elseif verb == 'extend' then
    replies[i] = if_owned(key, owner, 'PEXPIRE', ttl)
  elseif verb == 'release' then
    replies[i] = if_owned(key, owner, 'DEL')
  else
    replies[i] = 'ERR unknown verb'
  end
end

return replies
