//! Each check of the doctor, on servers that are in the state which it is to find.

mod clocks;
mod data;
mod examined;
mod healthy;
mod limits;
mod managed;
mod quorum;
mod rights;
mod roles;
mod security;
