-- What becomes of the line for a key: callers that wait for it, in the order in which they came.
--
-- The line is text. Each caller has an entry: up to when it waits, when it came and its client, for how long it gets
-- the key, how many tokens, its round, its owner.
-- This owner leaves it. With an `entry` it enters it again, in place of what it had there under another owner; the
-- answer is how many wait before. If the key is free, and `gives` is true or a place behind the first caller's, that
-- caller gets the key, and its client a message. Then the second answer is that client, the round and the token.
-- A caller that would get the key for no time only keeps its place: while it is the first, no caller in line gets the
-- key. The third answer is for how many milliseconds that may be so.
-- A round that begins with 0 says that the client gives signs of life, and hears of its gifts. Its callers leave the
-- line once there is no sign, or no subscriber to the message, when they would get the key or are before the entry.
-- Behind a gift, the first of those that wait is told so by a message with the token 0.
local function line_up(node, place, waits, count_at, owner, entry, gives)
  local MOST_WAITING, try, owners, counters, now = 64, redis.pcall, node.owners, node.counters, node.now
  local sub, own, stands = string.sub, ' ' .. owner .. '\n', entry and entry[2]
  local waiting, untils, changed, ahead, at = {}, {}, false, 0, 1
  for line, ends, its in string.gmatch(owners[waits] or '', '((%d+) (%d+ %x+) %d+ %d+ %d+ [^\n]+\n)') do
    ends = tonumber(ends)
    if its == stands or sub(line, -#own) == own then
      -- It stays where it is while only those before it are looked at.
      changed = type(gives) ~= 'string'
    elseif ends > now then
      waiting[#waiting + 1], untils[#untils + 1] = line, ends
      if stands and its < stands then ahead, at = ahead + 1, at + 1 end
    end
  end
  local kept, passed
  gives = not owners[place] and node.votes and gives
  while waiting[1] and not passed and (gives or at > 1) do
    local prefix = sub(KEYS[1], 1, -5)
    local its, client, grant, block, round, gets =
      string.match(waiting[1], '^%d+ (%d+ (%x+)) (%d+) (%d+) (%d+) ([^\n]+)\n')
    local signs = #round > 1 and sub(round, 1, 1) == '0'
    -- Where that cannot be read, the client may be alive.
    local gone = signs and try('MGET', prefix .. 'alive:' .. client)[1] == false
    if not gone then
      if not gives or gives ~= true and its >= gives then break end
      local token = grant ~= '0' and string.format('%016.0f', counters[count_at] + 1)
      if not token then kept = untils[1] - now break end
      local last = string.format('%016.0f', token + block - 1)
      if last > GREATEST or type(try('ZADD', KEYS[#KEYS], last, ARGV[4 + count_at])) == 'table' then break end
      counters[count_at] = last
      local set = try('SET', KEYS[place], gets, 'NX', 'PX', grant)
      if not set or set.err then break end
      local message = string.format(' %s %.0f %s', token, node.micros, node.run)
      local heard = try('PUBLISH', prefix .. 'wake:' .. client, round .. message)
      -- Without the right to publish, a release leaves the key free: the next question gives it to this caller.
      if gives == true and signs and type(heard) == 'table' then try('DEL', KEYS[place]) break end
      gone = heard == 0 and signs
      if gone then
        try('DEL', KEYS[place])
      else
        owners[place], passed = gets, client .. ' ' .. round .. ' ' .. token
      end
    end
    table.remove(waiting, 1)
    table.remove(untils, 1)
    changed = true
    if at > 1 then ahead, at = ahead - 1, at - 1 end
  end
  if passed and waiting[1] then
    -- It may not ask soon.
    local came, client, round = string.match(waiting[1], '^%d+ (%d+) (%x+) %d+ %d+ (0%d+) ')
    if came and node.micros > came + 1000000 then
      local message = string.format('%s 0 %.0f %s', round, node.micros, node.run)
      try('PUBLISH', sub(KEYS[1], 1, -5) .. 'wake:' .. client, message)
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
  return ahead, passed, kept
end
