-- The verbs of a lock of several keys, of a shared one, of one that is upgraded and of one of several slots.
--
-- It is the rest of `several_verb(one, kind, op, call)`, and says there what `calls` says of a verb.
local owners, counters, try = call.owners, call.counters, redis.pcall
local keys, takes, shares, waits = tonumber(ARGV[op + 1]), one == 'acquire', kind == 'shared', kind == 'next'
local upgrades, is_slot = kind == 'over', kind == 'slot'
local counts, buries = takes or one == 'write_back' or one == 'heal', takes or one == 'heal' or one == 'tombstone'
local arguments = 3 + (one ~= 'release' and 1 or 0) + (takes and 2 or counts and 1 or 0)
  + ((waits or upgrades or is_slot) and 1 or 0)
local own_keys = keys + (buries and 1 or 0) + (is_slot and 1 or 0)
local lets_go = one == 'release' or one == 'tombstone'
-- A key may then be free for those that wait in line: the last of its KEYS.
local frees = lets_go and keys == 1
local all_keys = own_keys + (frees and 1 or 0)
local function answers(at, place, counter_at)
  local lock = {owners = owners, owner = ARGV[at + 2], ttl = ARGV[at + 3], place = place, sharings = {}}
  local owner, ttl, last_place, sharings = lock.owner, lock.ttl, place + keys - 1, lock.sharings
  local first, stored = counter_at - keys + 1, 0
  lock.last_place, lock.takes, lock.shares, lock.upgrades = last_place, takes, shares, upgrades
  lock.upgraded = upgrades and ARGV[at + arguments - 1]
  lock.now = call.micros > 0 and math.floor(call.micros / 1000)
  if takes and not call.uncounted then
    stored = counters[first]
    for at = first + 1, counter_at do
      if counters[at] > stored then stored = counters[at] end
    end
  end
  if not lets_go then
    if call.refused then return call.refused, stored end
    if buries and owners[last_place + 1] then return TOMBSTONED, stored end
    if takes and call.uncounted then return call.uncounted, stored end
    if is_slot then
      local refusal, keep = slots_of(lock, ARGV[at + arguments - 1], place + own_keys - 1)
      lock.keep_slots = keep
      local refused, number
      if takes then refused, number = refusal() end
      if refused then return refused, number or stored end
    end
  end
  local read, share, leave = sharing_of(lock)
  lock.share, lock.leave = share, leave

  -- How many of the keys are the owner's; and of the other owners, the one that stays for the longest, or for ever,
  -- and for how long. An acquire treats keys of its own owner like those of others.
  local own, remaining, other_owner, only_shared = 0, nil, nil, true
  for key = place, last_place do
    local found = owners[key]
    if found and (shares or waits or upgrades) and string.sub(found, 1, #SHARED) == SHARED then
      local sharing, error = read(key)
      if error then return error, stored end
      sharings[key] = sharing
    end
    local sharing = sharings[key]
    if found == owner or sharing and (sharing.has_upgraded and not waits or shares and sharing.own) then
      own = own + 1
    end
  end
  local unknown
  local function is_in_the_way(stays, who, is_shared)
    if not remaining or remaining ~= -1 and (stays == -1 or stays >= remaining) then
      remaining, other_owner = stays, who
    end
    only_shared = only_shared and is_shared
  end
  for key = place, last_place do
    local found, sharing = owners[key], sharings[key]
    -- A release of the owner's own keys need not look at other owners.
    if not found or lets_go and own > 0 then
    elseif sharing then
      local is_full, ends = sharing.count >= MOST_SHARERS and sharing.first, nil
      local alone = sharing.upgrade and sharing.upgrade[1]
      if waits then
        ends = sharing.stay
      elseif upgrades then
        ends = (takes or not sharing.has_upgraded) and sharing.stay
      elseif takes then
        ends = sharing.own or alone or sharing.wish or is_full
      elseif one == 'heal' and not (sharing.own or sharing.has_upgraded) then
        -- Other readers do not block a reader that has lost its share and gets it back.
        ends = alone or is_full
      end
      if ends then is_in_the_way(ends - sharing.now, not shares and found or '', true) end
    elseif takes or found ~= owner then
      local stays = try('PTTL', KEYS[key])
      unknown = unknown or failed(stays, 'PTTL')
      if not unknown then is_in_the_way(stays, found, false) end
    end
  end
  if unknown and not lets_go then return unknown, stored end
  -- In its last millisecond it is still another's.
  if remaining == 0 then remaining = 1 end

  if lets_go then
    local reply = own > 0 and 0 or unknown or remaining or MISSING
    for key = place, last_place do
      local error
      if owners[key] == owner then
        error = failed(try('DEL', KEYS[key]), 'DEL')
        if not error then owners[key] = false end
      elseif sharings[key] and sharings[key].named then
        if sharings[key].has_upgraded then sharings[key].upgrade = nil end
        error = leave(key, sharings[key])
      end
      if error then reply = error end
    end
    if one == 'tombstone' then
      owners[last_place + 1] = owner
      reply = failed(try('SET', KEYS[last_place + 1], owner, 'PX', ttl), 'SET') or reply
    end
    return reply, 0
  end

  if remaining then
    if waits and only_shared then
      for key = place, last_place do
        local sharing = sharings[key]
        if sharing and sharing.stay then
          sharing.wish = math.max(sharing.wish or 0, sharing.now + ARGV[at + 6])
          local error = share(key, sharing, sharing.own)
          if error then return error, stored end
        end
      end
    end
    local label = takes and told(other_owner) or ''
    return remaining, label == '' and stored or stored .. label
  end
  if not (takes or one == 'heal') and own < keys then return MISSING, 0 end

  if not counts then first = counter_at + 1 end
  return nil, stored, counts and ARGV[at + (takes and 5 or 4)], function(counter)
    return grant(lock, counter, counters, first, counter_at)
  end, nil, takes and ARGV[at + 4]
end
return arguments, all_keys, counts and keys or frees and 1 or 0, answers, frees
