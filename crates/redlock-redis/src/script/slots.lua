-- How many slots a lock has, which is remembered beside their keys for as long as one of them is kept.
--
-- Returns what refuses a lock of another number, and what remembers the number.
local function slots_of(lock, slots, place)
  local try, owners, ttl = redis.pcall, lock.owners, lock.ttl
  local MISNUMBERED = 'what is remembered of how many slots there are is damaged: delete the key'

  local function refusal()
    local others = owners[place]
    if others and not string.find(others, '^%d%d?$') then return MISNUMBERED end
    if others and others ~= slots then
      local stays = try('PTTL', KEYS[place])
      if type(stays) == 'table' then return failed(stays, 'PTTL') end
      return OTHER_SLOTS, others .. ' ' .. math.max(stays, 1)
    end
  end

  -- Remembers how many slots there are, for as long as the lock is kept.
  local function keep()
    if not owners[place] then
      local set = try('SET', KEYS[place], slots, 'NX', 'PX', ttl)
      if not set then return MISNUMBERED end
      if set.err then return failed(set, 'SET') end
      owners[place] = slots
    elseif owners[place] == slots then
      local stays = try('PTTL', KEYS[place])
      if type(stays) == 'table' then return failed(stays, 'PTTL') end
      local kept = stays < tonumber(ttl) and try('PEXPIRE', KEYS[place], ttl)
      return type(kept) == 'table' and failed(kept, 'PEXPIRE')
    end
  end

  return refusal, keep
end
