//! Servers that are not as they should be, called by the script only.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod odd;

/// Whether servers are called by functions.
const FUNCTIONS: bool = false;
