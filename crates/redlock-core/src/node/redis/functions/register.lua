-- The functions of the library. Two do the same, and differ in what a server whose memory is full refuses to call.
local function register(verb, callback, flags)
  redis.register_function{function_name = NAME .. '_' .. verb, callback = callback, flags = flags}
end
register('take', leases, {})
-- It takes no key, so that leases can be kept and released without memory.
register('keep', leases, {'allow-oom'})
-- Whatever the others do not serve, where it matters that the process has looked.
register('call', look, {})
-- Whether functions may be called, and may do what the script needs no right for.
register('ready', function() return redis.call('TIME') end, {})
