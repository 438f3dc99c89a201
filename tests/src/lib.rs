//! What the tests in `tests/` share: servers, client processes, one history of all of them, and a
//! network that fails on command.
//!
//! Every test here needs a `redis-server` or `valkey-server` and fails without one.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the only users are the tests beside it"
)]

mod browser;
mod bus;
mod client;
mod clock;
mod event;
mod fleet;
mod history;
mod job_check;
mod job_log;
mod logs;
mod nodes;
mod patience;
mod process;
mod proxy;
mod random;
mod relay;
mod time_machine;
mod work;

pub use self::{
    browser::{Browser, Look, Tab},
    bus::Bus,
    client::{Connect, builder, client, voting, wide_client},
    clock::now,
    event::{Event, HistoryWriter, Moment},
    fleet::Fleet,
    history::{History, Hold, Overlap},
    job_check::{JobCheck, ReplicaStop},
    job_log::{JobEvent, JobLog, JobMoment, JobRun},
    logs::Logs,
    nodes::{ClusterNodes, Nodes, WatchedNodes},
    patience::{eventually, for_as_long_as, polled, within},
    process::ClientProcess,
    proxy::{Proxies, Proxy},
    random::Random,
    relay::{Relay, Repeat},
    time_machine::TimeMachine,
    work::{
        HoldWork, Job, Jobs, Lead, Load, LoadSummary, MissedTicks, OverlapPolicy, Policies, Serve,
        Work, work,
    },
};
