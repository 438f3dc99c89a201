-- The codes of answers that are no milliseconds; `speak/wire/codes.rs` reads them.
local MISSING = -2 -- No owner has the key, or not the expected one.
local TOMBSTONED = -3 -- The owner was tombstoned.
local OTHER_POLICY = -4
local PASSED = -5 -- The tick has passed.
local EARLY = -6
local LATE = -7
local FORGOTTEN = -8 -- The tick may have been forgotten.
local OTHER_SLOTS = -9 -- Others give the lock another number of slots.

