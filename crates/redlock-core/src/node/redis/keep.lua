-- Keeps or releases keys, each if its owner has it; what else a transaction needs, the server has commands for.
--
-- KEYS   the keys, no key twice
-- ARGV   for each its owner, and for how many milliseconds it is kept; nothing to release it
-- Answer for each: 1 if the owner has it, else 0; an error where one came up.
local done, owners = {}, redis.call('MGET', unpack(KEYS))
for place, key in ipairs(KEYS) do
  local ttl = ARGV[2 * place]
  if owners[place] ~= ARGV[2 * place - 1] then
    done[place] = 0
  elseif ttl == '' then
    done[place] = redis.pcall('DEL', key)
  else
    done[place] = redis.pcall('PEXPIRE', key, ttl)
  end
end
return done
