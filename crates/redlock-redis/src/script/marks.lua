-- The verbs of the node itself: its mark, its clock, its facts and its counters.
--
-- It is the rest of `other_verb`.
if verb == 'open' then
  return 4, 1, 0, function(at, place)
    local floor, began, horizon = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local found, blesses = owners[place], horizon == ''
    if call.refused then return call.refused, 0 end
    if string.format('%.0f', call.since) ~= began then return MISSING, 0 end
    if call.state ~= 2 and not (call.state == 0 and blesses) then return MISSING, 0 end
    if found and sixteen(found) ~= found then return BLURRED, 0 end
    return nil, 0, floor, function()
      -- Only a node that no operator vouches for may have forgotten what was claimed.
      local error = not blesses and not (found and found >= horizon) and store(owners, place, horizon, BLURRED)
      if error then return error end
      for counter_at = 2, tonumber(ARGV[4]) do
        if counters[counter_at] < counters[1] then counters[counter_at] = counters[1] end
      end
      return failed(try('SET', KEYS[1], call.voting), 'SET') or 0
    end
  end
elseif verb == 'sign' then
  return 2, 1, 0, function(at, place)
    if call.refused then return call.refused, 0 end
    local found = owners[place]
    local set = try('SET', KEYS[place], '1', 'PX', ARGV[at + 1])
    owners[place] = '1'
    return failed(set, 'SET') or (found and 0 or MISSING), 0
  end
elseif verb == 'tick' then
  return 1, 0, 0, function()
    return type(call.refused) == 'string' and call.refused or 0, 0
  end
elseif verb == 'inspect' then
  return 1, 0, 0, function()
    -- A replica that cannot look at its mark still answers with its facts.
    local reply, facts = 0, ''
    for section in string.gmatch('server replication memory persistence cluster', '%l+') do
      local info = try('INFO', section)
      reply = failed(info, 'INFO') or reply
      if type(info) == 'string' then facts = facts .. info end
    end
    return reply, facts
  end
elseif verb == 'survey' then
  return 1, 0, 0, function()
    if type(call.refused) == 'string' then return call.refused, 0 end
    local last = try('ZRANGE', KEYS[#KEYS], -1, -1, 'WITHSCORES')
    if last.err then return failed(last, 'ZRANGE'), 0 end
    local greatest = sixteen(last[2] or '0')
    if not greatest then return MISCOUNTED, 0 end
    -- No lease has such a number, so it says nothing about the numbers of leases.
    return greatest > GREATEST and 'the fencing counter is beyond its range' or 0, greatest
  end
end
