//! The exhaustive model: its worlds, and the rules that it breaks on purpose.

mod leases;
mod ledger;
mod lines;
mod mutations;
mod named;
mod program;
mod reduction;
mod ticks;
mod worlds;
