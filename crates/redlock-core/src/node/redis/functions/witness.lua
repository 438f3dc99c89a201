-- The marks that were looked at, by their keys.
--
-- This is a variable of the library. It lives in the process and not in its data, so it is gone with the process, and
-- whenever the library is loaded again. A mark that is not there and was never looked at was never written by this
-- process, so it is not one that was deleted.
local looked = {}

-- Has the script do the call, and tells it whether it is the first one that looks at the mark.
local function look(KEYS, ARGV)
  if string.sub(ARGV[1], 1, 1) ~= '-' then KEYS.is_new, looked[KEYS[1]] = not looked[KEYS[1]], true end
  return script(KEYS, ARGV)
end
