-- The calls: each operation in its turn, and its two answers.
--
-- The other verbs are in `several_verb` and `other_verb`. These say how many of ARGV, of KEYS and of the counters are a
-- verb's own, and its function, which says its two answers. The first is nil where another owner has the key.
-- It is nil as well where there is something to grant. Then there are more: what to count first, what to do then, and a
-- claim's newest run. What to do is to give the key to the owner, if it is not said.
-- What to do gets the new value of the first counter; a sixth value is a token to propose and to answer with.
local replies, reply_at, op, next_key, counter_at = {state, detail, micros, since, run}, 6, 5 + needed, 2, 1
local node, call
local function line(...)
  node = node or {
    owners = owners, counters = counters, now = math.floor(micros / 1000), micros = micros, run = run,
    votes = state == 1 and not uncounted,
  }
  return line_up(node, ...)
end
while ARGV[op] do
  local verb, owner, ttl, place = ARGV[op], ARGV[op + 1], ARGV[op + 2], next_key
  local found, reply, second = owners[place], nil, 0
  -- What to count before anything is granted, and the token to answer with; what to do then, and a claim's newest run.
  local counter, token, prolongs, work, run
  local count_at = counter_at + 1
  -- The place of the line for the key, the caller's entry there, and whether the key may be free for others there.
  local waits, entry, frees
  -- Whether the entry only keeps a place, and for how long another one does that is before it.
  local keeps, kept
  if verb == 'acquire' or verb == 'queue' then
    token, counter = ARGV[op + 3], ARGV[op + 4]
    op, next_key, counter_at = op + 5, next_key + 2, count_at
    second = counters[count_at] or 0
    reply = refused or owners[place + 1] and TOMBSTONED or uncounted
    if verb == 'queue' then
      entry = {0, ARGV[op], ARGV[op + 1], ARGV[op + 2], ARGV[op + 3], owner}
      waits, entry.stay, op, next_key = next_key, ARGV[op + 4], op + 5, next_key + 1
      keeps = entry[3] == '0'
      if not reply and not found and owners[waits] then
        local _
        _, _, kept = line(place, waits, count_at, owner, nil, entry[2])
        found, second = owners[place], counters[count_at]
      end
    end
    -- A transaction may have taken the key for this owner.
    prolongs = found == owner
  elseif verb == 'release' or verb == 'tombstone' then
    op, next_key, counter_at = op + 2, next_key + 1, count_at
    if not found then
      reply = MISSING
    elseif found == owner then
      reply = failed(try('DEL', KEYS[place]), 'DEL') or 0
      if reply == 0 then owners[place] = false end
    end
  elseif verb == 'extend' or verb == 'write_back' or verb == 'heal' then
    op, next_key, reply, prolongs = op + 3, next_key + 1, refused, found == owner
    if verb ~= 'extend' then counter, op, counter_at = ARGV[op], op + 1, count_at end
    if verb == 'heal' then
      next_key, reply = next_key + 1, reply or owners[place + 1] and TOMBSTONED
    elseif not found then
      reply = reply or MISSING
    end
  else
    call = call or {
      owners = owners, counters = counters, uncounted = uncounted, refused = refused, voting = voting,
      state = state, micros = micros, since = since,
    }
    local arguments, keys, counted, answers
    local one, kind = string.match(verb, '^([%l_]+)_(%l+)$')
    if kind == 'all' or kind == 'shared' or kind == 'next' or kind == 'over' or kind == 'slot' then
      arguments, keys, counted, answers, frees = several_verb(one, kind, op, call)
    else
      arguments, keys, counted, answers = other_verb(verb, call)
    end
    counter_at = counter_at + counted
    reply, second, counter, work, run, token = answers(op, place, counter_at)
    if verb == 'claim' then token = counter end
    if verb == 'open' then count_at = 1 end
    if frees then owner = ARGV[op + 2] end
    op, next_key = op + arguments, next_key + keys
  end

  if not reply and (not found or prolongs or work) and not kept and (prolongs or not keeps) then
    -- What was proposed may be too small.
    if token and #counter <= 16 and token <= second then
      local reserved = counter - token
      token = string.format('%016.0f', second + 1)
      counter = string.format('%016.0f', token + reserved)
    end
    if counter then
      if uncounted then
        reply = uncounted
      elseif #counter > 16 or counter > GREATEST then
        reply = 'the fencing counter is beyond its range'
      elseif counter > counters[count_at] then
        local set = try('ZADD', KEYS[#KEYS], counter, ARGV[4 + count_at])
        if type(set) == 'table' then reply = failed(set, 'ZADD') else counters[count_at] = counter end
      end
    end
    if not reply and work then
      reply = work(counter)
      if reply == 0 then second = token or second end
    elseif not reply and prolongs then
      local set = try('PEXPIRE', KEYS[place], ttl)
      reply = set == 1 and 0 or failed(set, 'PEXPIRE') or MISSING
      if reply == 0 then second = token or second end
    elseif not reply then
      local set = try('SET', KEYS[place], owner, 'NX', 'PX', ttl)
      -- A key of another type has no owner that could be compared.
      reply = set and (failed(set, 'SET') or 0)
      if reply == 0 then
        owners[place], second = owner, token or second
        if run then second = token .. ' ' .. run end
      end
    end
  end
  if not reply then
    -- Another owner has the key; in its last millisecond it is still another's.
    reply = kept or try('PTTL', KEYS[place])
    reply = failed(reply, 'PTTL') or (reply == 0 and 1) or reply
    local is_shared = found and string.sub(found, 1, 7) == 'shared\n'
    local may_wait = entry and entry.stay ~= '0' and (found or keeps or kept) and state == 1
    if may_wait and type(reply) == 'number' and not is_shared then
      entry[1] = string.format('%.0f', math.floor(micros / 1000) + entry.stay)
      local ahead = line(place, waits, count_at, owner, entry)
      if ahead then second = second .. '+' .. ahead end
    end
    if token and found and #found > 33 then second = second .. told(found) end
  end
  if (verb == 'acquire' or verb == 'queue') and prolongs and reply ~= 0 then
    -- It is refused, so it is not left what the transaction has taken.
    if not failed(try('DEL', KEYS[place]), 'DEL') then owners[place] = false end
  elseif verb == 'tombstone' then
    -- The key was released even if there is no memory for the tombstone.
    owners[next_key], op, next_key = owner, op + 1, next_key + 1
    reply = failed(try('SET', KEYS[place + 1], owner, 'PX', ttl), 'SET') or reply
  end
  if verb == 'release' or verb == 'tombstone' then frees, next_key = true, next_key + 1 end
  if frees then
    waits = next_key - 1
    local lined = owners[waits]
    if lined and micros > 0 and (not owners[place] or find(lined, ' ' .. owner .. '\n', 1, true)) then
      local _, passed = line(place, waits, count_at, owner, nil, true)
      second = passed or second
    end
  elseif entry and reply == 0 and owners[waits] then
    line(place, waits, count_at, owner)
  end

  replies[reply_at], replies[reply_at + 1] = reply, second
  reply_at = reply_at + 2
end
return replies
