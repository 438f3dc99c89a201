-- What an answer says of an owner: a space and its label.
--
-- An owner is a secret of 32 digits, and perhaps a space and a label. The value of another library may look different,
-- and be all secret: then the answer says nothing of it. A star says that a key is shared.
local function told(owner)
  if string.sub(owner, 1, 7) == 'shared\n' then return '*' end
  local _, space = string.find(owner, '^[%da-f]+ ')
  -- One more byte than the longest label has tells that it is none.
  return space == 33 and string.sub(owner, 33, 98) or ''
end

-- The owner of each key, where names stay as they are; nothing elsewhere, where all keys are the client's.
--
-- Such a key may be another program's, and its value may have any length, so only as much of it is read as the longest
-- value of ours has, which many share: a server does nothing else while it copies a value. A value of another type is
-- none, and so is an empty one. Without the right to read a part of a value, all of it is read.
local function of_others(KEYS)
  local OWN, LONGEST, try, last = '{redlock:verbatim}', 8191, redis.pcall, #KEYS - 1
  if string.sub(KEYS[1], 1, #OWN) ~= OWN then return nil end
  local owners, others, places = {}, {}, {}
  for place = 1, last do
    local key = KEYS[place]
    local value = string.sub(key, 1, #OWN) ~= OWN and try('GETRANGE', key, 0, LONGEST)
    if type(value) == 'string' then
      owners[place] = value ~= '' and value
    else
      others[#others + 1], places[#places + 1] = key, place
    end
  end
  -- The mark is among them.
  local values = try('MGET', unpack(others))
  if values.err then return values end
  for at, place in ipairs(places) do owners[place] = values[at] end
  return owners
end
