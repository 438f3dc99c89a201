//! Servers that are not as they should be: foreign or damaged keys, no memory left, rights that are missing.
//!
//! The errors say what is wrong, in words for an operator. No client is granted anything because of it, and clients can
//! still release keys.

mod counters;
mod fixtures;
mod jobs;
mod keys;
mod mark;
mod memory;
mod rights;
mod shared;
