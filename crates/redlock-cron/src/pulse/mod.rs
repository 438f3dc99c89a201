//! How tokio-cron-scheduler wakes jobs up.

mod attach;
mod clock_watch;
mod jobs;

pub(crate) use self::{
    attach::attach,
    clock_watch::watch,
    jobs::{Attached, Jobs},
};
