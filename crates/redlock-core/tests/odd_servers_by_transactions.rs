//! Servers that are not as they should be, called by transactions, and by the script for what these leave unclear.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod odd;

/// Whether plain requests are made as transactions first.
const TRANSACTIONS: bool = true;
