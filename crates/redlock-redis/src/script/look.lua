-- The look at the node: what it has under the keys, its counters, and whether it votes.
local KEYS, ARGV, try, find, policy = KEYS, ARGV, redis.pcall, string.find, ARGV[1]

-- The owner of each key, by its place in KEYS; the first is the mark.
local owners = of_others(KEYS) or try('MGET', unpack(KEYS, 1, #KEYS - 1))
if owners.err then return {err = failed(owners, 'MGET')} end

-- Whether there is a look at the mark, and at counters.
local looks = string.sub(policy, 1, 1) ~= '-'
if not looks then
  policy = string.sub(policy, 2)
  local lines = string.sub(KEYS[1], 1, -5) .. 'line:'
  for place = 2, #KEYS - 1 do
    looks = looks or owners[place] and string.sub(KEYS[place], 1, #lines) == lines
  end
end

-- The counters by their place, the first of which is the floor of the others.
local needed = tonumber(ARGV[4])
local counters, uncounted = {}, nil
if looks and needed > 0 then
  counters = try('ZMSCORE', KEYS[#KEYS], unpack(ARGV, 5, 4 + needed))
  uncounted = counters.err and failed(counters, 'ZMSCORE')
  if not uncounted then
    local floor = '0000000000000000'
    for place = 1, needed do
      local stored = counters[place] and sixteen(counters[place])
      -- A damaged counter is used in no calculation and in no answer.
      if counters[place] and not stored then uncounted = MISCOUNTED end
      stored = stored or floor
      if place == 1 then floor = stored end
      counters[place] = stored > floor and stored or floor
    end
  end
end

-- What occurs twice stands for its first place: one value is read and written under both.
if ARGV[3] ~= '' then
  local function joined(values, list, from, to)
    local seen, places = {}, {}
    for at = from, to do
      seen[list[at]] = seen[list[at]] or #places + 1
      places[#places + 1] = seen[list[at]]
    end
    return setmetatable({}, {
      __index = function(_, place) return values[places[place]] end,
      __newindex = function(_, place, value) values[places[place]] = value end,
    })
  end
  if ARGV[3] ~= 'counters' then owners = joined(owners, KEYS, 1, #KEYS) end
  if ARGV[3] ~= 'keys' and not uncounted then counters = joined(counters, ARGV, 5, 4 + needed) end
end

-- Where the node stands.
local state, detail, micros, since, run, voting, refused = -1, 0, 0, 0, '', nil, nil
if looks then
  local sub = string.sub
  -- Servers before 7.0 take one section at a time.
  local both = redis.REDIS_VERSION_NUM
  local info = both and try('INFO', 'server', 'replication') or try('INFO', 'server')
  local more = both and info or try('INFO', 'replication')
  refused = failed(info, 'INFO') or not both and failed(more, 'INFO')
  if not refused then
    -- Looking for a pattern in all of it would take longer than all the rest of the call.
    local at = find(info, 'run_id:', 1, true) or 1
    run = sub(info, at + 7, find(info, '\r', at, true) - 1)
    -- As the server read its clock when the call began.
    at = find(info, 'server_time_usec:', at, true) or 1
    micros = tonumber(sub(info, at + 17, find(info, '\r', at, true) - 1))
    -- It is another one once the data was replaced by another server's, which a master that lives through it has been
    -- a replica for.
    at = find(more, 'master_replid:', both and at or 1, true) or 1
    local data = sub(more, at + 14, find(more, '\r', at, true) - 1)
    local found = owners[1]
    voting = 'voting ' .. run .. ' ' .. data .. ' ' .. policy
    if found == voting and micros then
      state = 1
    else
      local length, step, trusts = string.match(ARGV[2], '^(%d+) (%d+) (%d)$')
      local word, its_run, its_data, its_policy, rest = string.match(found or '', '^(%l+) (%x+) (%x+) (%S+)(.*)$')
      -- Where others name the server, a mark has the epoch, and a roll of its own, which stays with it.
      local own, epoch = string.match(policy, '^(%S+) ?(%d*)')
      local its_epoch, roll, more_rest = string.match(rest or '', '^ (%d+) (%d+:%S+)(.*)$')
      if its_epoch then rest = more_rest else its_epoch = '' end
      local began, aged, last = string.match(rest or '', '^ (%d+) (%d+) (%d+)$')
      local now, text, term = math.floor((micros or 0) / 1000), nil, policy
      local is_same = its_run == run and its_data == data and its_epoch == epoch
      local is_trusted = trusts == '1' and its_run ~= run
      if is_same and roll then term = own .. ' ' .. epoch .. ' ' .. roll end
      voting = 'voting ' .. run .. ' ' .. data .. ' ' .. term
      if not (micros and find(run, '^%x+$') and find(data, '^%x+$')) then
        refused = 'INFO does not say run_id, server_time_usec and master_replid'
      elseif found and not (word == 'voting' and rest == '' or word == 'quarantined' and began) then
        refused = DAMAGED
      elseif found and its_policy ~= own then
        state, detail, refused = 3, its_policy, OTHER_POLICY
      elseif word == 'voting' and (is_same or is_trusted) then
        -- A session may have another roll, which was the mark's once.
        state, text = 1, is_trusted and voting
      else
        if found and (is_same or is_trusted) then
          -- A clock that was set forward counts as one step, and one that was set back as none.
          aged = aged + math.max(0, math.min(now - last, tonumber(step)))
          since = tonumber(began)
        else
          aged, since = 0, micros
        end
        state, detail = 0, length - aged
        if detail <= 0 then state, detail = 2, 0 end
        text = string.format('quarantined %s %s %s %.0f %.0f %.0f', run, data, term, since, aged, now)
      end
      if text then
        -- A mark of another type is not overwritten.
        local set = found and try('SET', KEYS[1], text) or try('SET', KEYS[1], text, 'NX')
        refused = failed(set, 'SET') or (not set and DAMAGED)
      end
    end
  end
  if type(refused) == 'string' then state, detail, micros, since, run = refused, 0, 0, 0, '' end
end
