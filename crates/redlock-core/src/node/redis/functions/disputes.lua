-- The keys that callers were refused, in this period of four seconds of the server's clock and in the one before.
--
-- A process whose callers hand a lease on among themselves leaves a gap for other processes from time to time. It need
-- not if no other process wants the key. These keys affect only how long callers wait: they may be forgotten at any
-- time.
local disputed, earlier, period, second, disputes = {}, {}, 0, '', 0

-- How many keys of a period are remembered; if there are more, all are disputed.
local MOST_DISPUTES = 4096

-- Forgets what is over at this second.
local function look_at_clock(now)
  second = now
  local at = math.floor(now / 4)
  if at ~= period then
    disputed, earlier, period, disputes = {}, at == period + 1 and disputed or {}, at, 0
  end
end

local function dispute(key, now)
  if now ~= second then look_at_clock(now) end
  if disputes < MOST_DISPUTES then
    disputes = disputes + (disputed[key] and 0 or 1)
    disputed[key] = true
  else
    disputed[true] = true
  end
end

-- The script knows the time in microseconds.
local function dispute_at(key, micros)
  dispute(key, string.format('%.0f', math.floor(micros / 1000000)))
end

local function is_disputed(key, now)
  if now ~= second then look_at_clock(now) end
  return disputed[key] or earlier[key] or disputed[true] or earlier[true]
end
