-- The body of `verb_of`, of which the parts from `shared` on are the beginning; its parameters are `verb`, `op` and
-- `call`.
--
-- Returns how many of ARGV, of KEYS and of the counters are a verb's own, and its
-- function, which says its two answers. The first is nil where another owner has the key.
-- It is nil as well where there is something to grant. Then there are more: what to count first, what to do then, and a
-- claim's newest run. What to do is to give the key to the owner, if it is not said.
-- What to do gets the new value of the first counter; a sixth value is a token to propose and to answer with.
local one, kind = string.match(verb, '^([%l_]+)_(%l+)$')
if kind == 'all' or kind == 'shared' or kind == 'next' or kind == 'over' or kind == 'slot' then
  return several(one, kind, op, call)
end
local arguments, keys, counted, answers = job_verb(verb, call)
if arguments then return arguments, keys, counted, answers end
return node_verb(verb, call)
