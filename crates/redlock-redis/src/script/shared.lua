-- Keys that several owners share, each up to an instant of its own.
--
-- The beginning of a shared key, the owner that stands for a writer's wish, the sign before an upgraded owner, and how
-- many can share a key. An upgraded owner is exclusive, but for a shared lease of the same holder, which it upgrades.
local SHARED, WISH, PLUS, MOST_SHARERS = 'shared\n', string.rep('-', 32), '+', 64

-- Returns how such keys are read, written, and left by the owner of a lock.
local function sharing_of(lock)
  local try, owners, owner, upgraded, now = redis.pcall, lock.owners, lock.owner, lock.upgraded, lock.now

  -- Reads a shared key; owners that have expired count only for `named`. `others` are the other owners that share
  -- it; `count` is how many share it, and `first` when the first of these ends; `own` is when this owner's share
  -- ends; `named` is set if the key names this owner; `upgrade` is the upgraded owner, and `has_upgraded` when this
  -- owner's upgrade ends; `stay` is up to when any owner but the `upgraded` one has the key; `wish` is when a wish
  -- ends.
  local function read(key)
    local found, from, lines, ends = owners[key], #SHARED + 1, {}, 0
    while from <= #found do
      local _, last, time, holder = string.find(found, '^(%d+) ([^\n]+)\n', from)
      if not last then return nil, 'what is remembered of who shares the key is damaged: delete the key' end
      lines[#lines + 1] = {tonumber(time), holder}
      ends, from = math.max(ends, tonumber(time)), last + 1
    end
    -- Without a look at the clock, the key's time to live tells the time: the key ends with its last owner.
    local stays = now or try('PTTL', KEYS[key])
    if type(stays) == 'table' then return nil, failed(stays, 'PTTL') end
    if stays < 0 and not now then return nil, 'the key is shared and was made to stay for ever: delete it' end
    local sharing = {now = now or ends - stays, others = {}, count = 0}
    for _, line in ipairs(lines) do
      local time, holder = line[1], line[2]
      local is_over, plain = time < sharing.now, holder
      local has_upgraded = string.sub(holder, 1, 1) == PLUS
      if has_upgraded then plain = string.sub(holder, 2) end
      if plain == owner then sharing.named = true end
      if not is_over and holder ~= WISH and holder ~= upgraded then
        sharing.stay = math.max(sharing.stay or time, time)
      end
      if holder == WISH then
        if not is_over then sharing.wish = time end
      elseif has_upgraded then
        if not is_over then sharing.upgrade = line end
        if not is_over and plain == owner then sharing.has_upgraded = time end
      elseif not is_over then
        sharing.count = sharing.count + 1
        sharing.first = math.min(sharing.first or time, time)
        if holder == owner then sharing.own = time else sharing.others[#sharing.others + 1] = line end
      end
    end
    return sharing
  end
  -- Writes the key, with this owner up to `own`, if that is given; deletes it if no owner has it and none waits.
  -- The answer is nothing, an error, or how long a key of another type stays.
  local function share(key, sharing, own)
    local text, ends = SHARED, 0
    local function add(time, holder)
      text, ends = text .. string.format('%.0f %s\n', time, holder), math.max(ends, time)
    end
    for _, other in ipairs(sharing.others) do add(other[1], other[2]) end
    if own then add(own, owner) end
    local upgrade = sharing.upgrade
    local left = ends == 0 and upgrade and string.sub(upgrade[2], 2)
    if upgrade then add(upgrade[1], upgrade[2]) end
    if left then
      -- If the upgraded owner is the only holder, the key becomes an ordinary exclusive key.
      text = left
    elseif sharing.wish then
      add(sharing.wish, WISH)
    end
    if ends == 0 then
      local error = failed(try('DEL', KEYS[key]), 'DEL')
      if not error then owners[key] = false end
      return error
    end
    -- A server whose memory is full lets a script continue to write after a first write, and this write takes no
    -- memory. So a shared lease can be extended and released there, like an exclusive one.
    local kept = owners[key] and try('PEXPIRE', KEYS[key], string.format('%.0f', math.max(1, ends - sharing.now)))
    if type(kept) == 'table' then return failed(kept, 'PEXPIRE') end
    ends = string.format('%.0f', ends)
    local set = owners[key] and try('SET', KEYS[key], text, 'PXAT', ends)
      or try('SET', KEYS[key], text, 'NX', 'PXAT', ends)
    if not set then
      local stays = try('PTTL', KEYS[key])
      return failed(stays, 'PTTL') or (stays == 0 and 1) or stays
    end
    if set.err then return failed(set, 'SET') end
    owners[key] = text
  end
  -- Writes the key without this owner. Servers differ on a key that is written to end in this millisecond: Redis
  -- keeps it, Valkey from 8.1 deletes it. So what is left lasts for one more.
  local function leave(key, sharing)
    local next = sharing.now + 1
    for _, other in ipairs(sharing.others) do other[1] = math.max(other[1], next) end
    if sharing.upgrade then sharing.upgrade[1] = math.max(sharing.upgrade[1], next) end
    if sharing.wish then sharing.wish = math.max(sharing.wish, next) end
    return share(key, sharing)
  end

  return read, share, leave
end
