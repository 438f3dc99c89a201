//! One replica of the service.

mod app;
mod error;
mod handlers;
mod partners;
mod serve;
mod state;

pub(crate) use self::{
    handlers::Statistics,
    partners::SLOW_CARD,
    serve::{LISTENING, NAMESPACE, Options, serve},
};
