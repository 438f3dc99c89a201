-- Counts a lock and takes or prolongs all of its keys, or none; the places of its counters are from `first` to `last`.
local function grant(lock, counter, counters, first, last)
  local try, owners, owner, ttl, now, sharings = redis.pcall, lock.owners, lock.owner, lock.ttl, lock.now, lock.sharings
  local share, leave = lock.share, lock.leave
  local counted = {}
  for at = first, last do
    if counter > counters[at] then counted[#counted + 1], counted[#counted + 2] = counter, ARGV[4 + at] end
  end
  local error = counted[1] and try('ZADD', KEYS[#KEYS], unpack(counted))
  if type(error) == 'table' then return failed(error, 'ZADD') end
  for at = first, last do
    if counter > counters[at] then counters[at] = counter end
  end
  local misnumbered = lock.keep_slots and lock.keep_slots()
  -- A lease lasts, whatever became of the number.
  if misnumbered and lock.takes then return misnumbered end
  local taken = {}
  for key = lock.place, lock.last_place do
    local reply
    local sharing = sharings[key]
    if lock.upgrades and sharing then
      local before = sharing.upgrade
      sharing.upgrade = {now + ttl, PLUS .. owner}
      reply = share(key, sharing)
      if not reply and not before then taken[#taken + 1] = key end
    elseif lock.shares then
      sharing = sharing or {now = now, others = {}}
      local is_new = not (sharing.own or sharing.has_upgraded)
      if sharing.has_upgraded then sharing.upgrade = nil end
      reply = share(key, sharing, now + ttl)
      if not reply and is_new then taken[#taken + 1], sharings[key] = key, sharing end
    elseif owners[key] and not sharings[key] then
      local set = try('PEXPIRE', KEYS[key], ttl)
      reply = set ~= 1 and (failed(set, 'PEXPIRE') or MISSING)
    else
      -- No owner shares the key any more, and the wish is this owner's, or that of another owner that waits.
      local set = sharings[key] and try('SET', KEYS[key], owner, 'PX', ttl)
        or try('SET', KEYS[key], owner, 'NX', 'PX', ttl)
      reply = failed(set, 'SET')
      if not set then
        -- A key of another type has no owner that could be compared.
        local stays = try('PTTL', KEYS[key])
        reply = failed(stays, 'PTTL') or (stays == 0 and 1) or stays
      end
      if not reply then taken[#taken + 1], owners[key] = key, owner end
    end
    if reply then
      -- None is taken if one cannot be.
      for _, key in ipairs(taken) do
        local sharing = sharings[key]
        if lock.upgrades and sharing then sharing.upgrade = nil end
        if not (lock.shares or lock.upgrades and sharing) or leave(key, sharing) then
          try('DEL', KEYS[key])
          owners[key] = false
        end
      end
      return reply
    end
  end
  return 0
end
