//! What the service does.
//!
//! Each locked handler reads, thinks and writes, with separate statements, as ordinary code does.

mod imports;
mod orders;
mod products;
mod statistics;

pub(crate) use self::{
    imports::{import, show_catalogue},
    orders::{pay, put_order, show_order},
    products::{put_product, reserve, show_product},
    statistics::{Statistics, statistics},
};
