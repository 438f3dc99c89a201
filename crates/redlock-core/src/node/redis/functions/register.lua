-- The functions of the library.
redis.register_function{function_name = NAME .. '_call', callback = look}
-- Whether functions may be called.
redis.register_function{function_name = NAME .. '_ready', callback = function() return 'ready' end}
