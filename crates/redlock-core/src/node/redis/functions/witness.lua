-- What the last whole look at the mark found: for each policy the mark that says that the node votes, and the run and
-- the data that such marks name.
--
-- These are variables of the library. They live in the process and not in its data, so they are gone with the process,
-- and whenever the library is loaded again. The run is the process's as long as it lives, so no call asks for it again.
-- Every call asks for the identity of the data: a master that was a replica meanwhile, and got only what it had missed,
-- has another one, and the library was not loaded again.
--
-- The text in which that identity was found is kept, too. Most calls get the same text again: then it costs no memory,
-- and no call searches it.
local witnessed, run, data, said = {}, nil, nil, nil
-- The marks that were looked at, by their keys. A mark that is not there and was never looked at was never written by this
-- process, so it is not one that was deleted.
local looked = {}

-- Whether the node votes. If not, the script says why.
local function votes(mark, policy)
  if not mark or mark ~= witnessed[policy] then return false end
  local info = redis.pcall('INFO', 'replication')
  if info == said then return true end
  if type(info) ~= 'string' or not string.find(info, data, 1, true) then return false end
  said = info
  return true
end

-- Has the script do the call, which looks at everything, and remembers what there was to see.
local function look(KEYS, ARGV)
  local policy = ARGV[1]
  if policy ~= '' then KEYS.is_new, looked[KEYS[1]] = not looked[KEYS[1]], true end
  KEYS.dispute = dispute_at
  local answer = script(KEYS, ARGV)
  -- Mostly there was the mark that was witnessed already.
  if KEYS.mark and KEYS.mark == witnessed[policy] then return answer end
  if answer[1] == 1 then
    local mark, info = redis.pcall('MGET', KEYS[1])[1], redis.pcall('INFO', 'replication')
    local id = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
    if id and mark == 'voting ' .. answer[5] .. ' ' .. id .. ' ' .. policy then
      local found = 'master_replid:' .. id .. '\r'
      if found ~= data then witnessed = {} end
      witnessed[policy], run, data, said = mark, answer[5], found, info
    end
  end
  return answer
end
