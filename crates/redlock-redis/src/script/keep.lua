-- Keeps or releases keys, each if its owner has it; what else a transaction needs, the server has commands for.
--
-- KEYS   the keys, no key twice; then, if one of them is to be released, the line of callers that wait for each
-- ARGV   for each its owner, and for how many milliseconds it is kept; nothing to release it
-- Answer for each: 1 if the owner has it, else 0; 2 if it was to be released and callers wait for it, which are not
-- passed over; an error where one came up.
local done, owners, count = {}, redis.call('MGET', unpack(KEYS)), #ARGV / 2
for place = 1, count do
  local key, ttl = KEYS[place], ARGV[2 * place]
  if ttl == '' and owners[count + place] then
    done[place] = 2
  elseif owners[place] ~= ARGV[2 * place - 1] then
    done[place] = 0
  elseif ttl == '' then
    done[place] = redis.pcall('DEL', key)
  else
    done[place] = redis.pcall('PEXPIRE', key, ttl)
  end
end
return done
