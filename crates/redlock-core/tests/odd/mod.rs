//! Servers that are not as they should be: foreign or damaged keys, no memory left, rights that are missing.
//!
//! Whatever is wrong is said, in words for an operator; nobody is granted anything because of it, and keys can
//! be let go all the same.

mod counters;
mod fixtures;
mod jobs;
mod keys;
mod mark;
mod memory;
mod rights;
mod shared;
