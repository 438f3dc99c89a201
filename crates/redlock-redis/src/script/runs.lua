-- The verbs of a job: what nodes remember of its runs.
--
-- They are lines: the letter of their series, the run, token, text. A run is its tick in milliseconds and two digits,
-- its attempt. Those of a series are in order, the newest first, which is the series' watermark: no run up to it can be
-- claimed. Behind the last one that is kept stands an anchor: the one before, whose token and text are gone and which
-- cannot be withdrawn. The horizon is the node's time, in milliseconds, from which on it remembers what was claimed, if
-- it ever lost its data.
--
-- It is the beginning of `other_verb(verb, call)`, and says there what `calls` says of a verb.
local try, owners, counters = redis.pcall, call.owners, call.counters

-- Stores a text that is no owner, or deletes it if it is empty; the error, which is `damaged` for a key of another
-- type.
local function store(owners, place, text, damaged)
  if text == '' then
    local error = failed(redis.pcall('DEL', KEYS[place]), 'DEL')
    if not error then owners[place] = false end
    return error
  end
  -- A key of another type is not overwritten.
  local try = redis.pcall
  local set = owners[place] and try('SET', KEYS[place], text) or try('SET', KEYS[place], text, 'NX')
  if not set then return damaged end
  if set.err then return failed(set, 'SET') end
  owners[place] = text
end

local ILLEGIBLE = 'what is remembered of the job is damaged: delete the key, and its last tick may start again'
-- How many runs of a series are remembered, and the least length of a line.
local MOST_RUNS, SHORTEST = 101, 41
-- What stands behind the tick of the last line, which tells of no run.
local ANCHOR = ' 0000000000000000 -'

-- Where the next line of a series begins, from a place on.
local function line_of(runs, series, from)
  local head = series .. ' '
  if from == 1 and string.sub(runs, 1, 2) == head then return 1 end
  local before = string.find(runs, '\n' .. head, math.max(from - 1, 1), true)
  return before and before + 1
end

-- The run of the line that begins at a place, unless it is something else.
local function run_at(runs, from)
  local tick, attempt, token = string.match(runs, '^%w (%d+) (%d+) (%d+) ', from)
  if tick and #tick == 16 and #attempt == 2 and #token == 16 then return tick .. ' ' .. attempt end
end

-- The newest line of a series and its run, or nothing and `''` if it has none; nothing if the value is not of runs.
local function newest(runs, series)
  local from = line_of(runs, series, 1)
  local run = run_at(runs, from or 1)
  if not run or not from then return nil, run and '' end
  return string.match(runs, '^[^\n]+', from), run
end

if verb == 'claim' then
  return 8, 4, 1, function(at, place, counter_at)
    local token, run, early, late = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]
    local tick = string.sub(run, 1, 16)
    local counter, runs, horizon = counters[counter_at] or 0, owners[place + 2], owners[place + 3]
    local now, last, watermark = math.floor(call.micros / 1000), nil, nil
    if runs then last, watermark = newest(runs, ARGV[at + 7]) end
    if call.refused then return call.refused, counter end
    if call.uncounted then return call.uncounted, counter end
    if owners[place + 1] then return TOMBSTONED, counter end
    if runs and not watermark then return ILLEGIBLE, counter end
    if last and watermark >= run then return PASSED, last end
    if tick - early > now then return EARLY, tick - early - now end
    if tick + late < now then return LATE, now - tick - late end
    if horizon and sixteen(horizon) ~= horizon then return BLURRED, counter end
    if horizon and tick - early <= tonumber(horizon) then return FORGOTTEN, counter end
    return nil, counter, token, nil, last
  end
elseif verb == 'commit' then
  return 7, 2, 1, function(at, place)
    local owner, ttl, token = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local run, text, series = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]
    local found, runs, last, watermark = owners[place], owners[place + 1], nil, nil
    if call.refused then return call.refused, 0 end
    if not found then return MISSING, 0 end
    if found ~= owner then return nil, 0 end
    if runs then last, watermark = newest(runs, series) end
    if runs and not watermark then return ILLEGIBLE, 0 end
    local line = series .. ' ' .. run .. ' ' .. token .. ' ' .. text
    local is_newer = not last or watermark < run
    if not is_newer and last ~= line then return PASSED, last end
    return nil, 0, token, function()
      if is_newer then
        local lines = runs and line .. '\n' .. runs or line
        local most = string.find(series, '%u') and 1 or MOST_RUNS
        local from = #lines > most * SHORTEST and 1 or nil
        for _ = 1, most do from = from and line_of(lines, series, from + 1) end
        if from then
          -- The newest tick before those stays claimed, however many of them are withdrawn.
          local anchor = string.sub(lines, from, from + 20) .. ANCHOR
          local behind, older = string.find(lines, '\n', from, true), line_of(lines, series, from + 1)
          if older then
            local rest = string.find(lines, '\n', older, true)
            lines = string.sub(lines, 1, older - 2) .. (rest and string.sub(lines, rest) or '')
          end
          lines = string.sub(lines, 1, from - 1) .. anchor .. (behind and string.sub(lines, behind) or '')
        end
        local error = store(owners, place + 1, lines, ILLEGIBLE)
        if error then return error end
      end
      local set = try('PEXPIRE', KEYS[place], ttl)
      return set == 1 and 0 or failed(set, 'PEXPIRE') or MISSING
    end
  end
elseif verb == 'record' then
  return 5, 1, 0, function(at, place)
    local run, text = ARGV[at + 4] .. ' ' .. ARGV[at + 1] .. ' ' .. ARGV[at + 2] .. ' ', ARGV[at + 3]
    local runs = owners[place]
    local from = runs and string.find('\n' .. runs, '\n' .. run, 1, true)
    if not from then return MISSING, 0 end
    local rest = string.find(runs, '\n', from, true) or #runs + 1
    runs = string.sub(runs, 1, from - 1) .. run .. text .. string.sub(runs, rest)
    return store(owners, place, runs, ILLEGIBLE) or 0, 0
  end
elseif verb == 'withdraw' then
  return 5, 1, 0, function(at, place)
    local run = ARGV[at + 4] .. ' ' .. ARGV[at + 1] .. ' ' .. ARGV[at + 2] .. ' ' .. ARGV[at + 3]
    local runs = owners[place]
    local from = runs and string.find('\n' .. runs .. '\n', '\n' .. run .. '\n', 1, true)
    if not from then return MISSING, 0 end
    local before, after = string.sub(runs, 1, math.max(from - 2, 0)), string.sub(runs, from + #run + 1)
    runs = before .. (before ~= '' and after ~= '' and '\n' or '') .. after
    return store(owners, place, runs, ILLEGIBLE) or 0, 0
  end
elseif verb == 'read' then
  return 1, 2, 0, function(_, place)
    local runs = owners[place + 1] or ''
    if call.refused then return call.refused, runs end
    if runs ~= '' and not run_at(runs, 1) then return ILLEGIBLE, runs end
    return not owners[place] and 0 or nil, runs
  end
end
