-- What is told of an owner: a space and its label.
--
-- An owner is a secret of 32 digits, and perhaps a space and a label. The value of another library may look different and be
-- all secret: then nothing is told of it. A star tells that a key is shared.
local function told(owner)
  if string.sub(owner, 1, 7) == 'shared\n' then return '*' end
  local _, space = string.find(owner, '^[%da-f]+ ')
  -- One more byte than the longest label has tells that it is none.
  return space == 33 and string.sub(owner, 33, 98) or ''
end

