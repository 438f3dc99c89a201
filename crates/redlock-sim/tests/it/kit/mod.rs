//! The async client in worlds of the kit.

mod faults;
mod random;
