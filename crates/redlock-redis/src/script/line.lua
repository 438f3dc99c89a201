-- What becomes of the line for a key: callers that wait for it, in the order in which they came.
--
-- The line is text. Each caller has an entry: up to when it waits, when it came and its client, for how long it gets
-- the key, how many tokens, its round, its owner.
-- This owner leaves it. With an `entry` it enters it again, in place of what it had there under another owner; the
-- answer is how many wait before. If the key is free, and `gives` is true or a place behind the first caller's, that
-- caller gets the key, and its client a message. Then the second answer is that client, the round and the token.
-- A caller that would get the key for no time only keeps its place: while it is the first, no caller in line gets the
-- key. The third answer is for how many milliseconds that may be so.
local function line_up(node, place, waits, count_at, owner, entry, gives)
  local MOST_WAITING, try, owners, counters, now = 64, redis.pcall, node.owners, node.counters, node.now
  local sub, own, stands = string.sub, ' ' .. owner .. '\n', entry and entry[2]
  local waiting, untils, changed, ahead, at, first = {}, {}, false, 0, 1, nil
  for line, ends, its in string.gmatch(owners[waits] or '', '((%d+) (%d+ %x+) %d+ %d+ %d+ [^\n]+\n)') do
    ends = tonumber(ends)
    if its == stands or sub(line, -#own) == own then
      -- It stays where it is while only those before it are looked at.
      changed = type(gives) ~= 'string'
    elseif ends > now then
      waiting[#waiting + 1], untils[#untils + 1], first = line, ends, first or its
      if stands and its < stands then ahead, at = ahead + 1, at + 1 end
    end
  end
  local kept, message, client
  if gives and first and (gives == true or first < gives) and not owners[place] and node.votes then
    local grant, block, round, gets = string.match(waiting[1], '^%d+ %d+ %x+ (%d+) (%d+) (%d+) ([^\n]+)\n')
    local token = grant ~= '0' and string.format('%016.0f', counters[count_at] + 1)
    local last = token and string.format('%016.0f', token + block - 1)
    if not token then
      kept = untils[1] - now
    elseif last <= GREATEST and type(try('ZADD', KEYS[#KEYS], last, ARGV[4 + count_at])) ~= 'table' then
      counters[count_at] = last
      local set = try('SET', KEYS[place], gets, 'NX', 'PX', grant)
      if set and not set.err then
        owners[place], changed = gets, true
        table.remove(waiting, 1)
        table.remove(untils, 1)
        client, message = sub(first, -16), string.format('%s %s %.0f %s', round, token, node.micros, node.run)
      end
    end
  end
  if entry then
    if #waiting >= MOST_WAITING then return end
    table.insert(waiting, at, table.concat(entry, ' ') .. '\n')
    untils[#untils + 1], changed = tonumber(entry[1]), true
  end
  if changed then
    local text, ends = table.concat(waiting), math.max(now + 1, unpack(untils))
    local set = text == '' and try('DEL', KEYS[waits]) or try('SET', KEYS[waits], text, 'PX', ends - now)
    if type(set) == 'table' and set.err then return end
    owners[waits] = text ~= '' and text
  end
  if message then
    try('PUBLISH', sub(KEYS[1], 1, -5) .. 'wake:' .. client, message)
    return ahead, client .. ' ' .. string.match(message, '^%d+ %d+')
  end
  return ahead, nil, kept
end
