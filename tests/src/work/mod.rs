//! What a client process does.

mod hold;
mod jobs;
mod lead;
mod load;
mod policies;
mod serve;
mod written_run;

use serde::{Deserialize, Serialize};

pub use self::{
    hold::HoldWork,
    jobs::{Job, Jobs, MissedTicks},
    lead::Lead,
    load::{Load, LoadSummary},
    policies::{OverlapPolicy, Policies},
    serve::Serve,
};

/// What a client process is to do, as it is told on its command line.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Work {
    /// Acquire, hold for a moment, release, from many tasks at once.
    Load(Load),
    /// Hold one lease until it is lost.
    Hold(HoldWork),
    /// Campaign, and lead until a term ends.
    Lead(Lead),
    /// Serve requests, one per resource at a time.
    Serve(Serve),
    /// Run jobs, as one of several replicas.
    Jobs(Jobs),
}

/// Does it; returns what there is to report, as JSON.
///
/// # Panics
///
/// If the client cannot be built, or the history not be written.
pub async fn work(work: Work) -> String {
    let report = match work {
        Work::Load(load) => serde_json::to_string(&load.run().await),
        Work::Hold(hold) => serde_json::to_string(&hold.run().await),
        Work::Lead(lead) => serde_json::to_string(&lead.run().await),
        Work::Jobs(jobs) => serde_json::to_string(&jobs.run().await),
        Work::Serve(serve) => serde_json::to_string(&serve.run().await.map_err(|e| e.to_string())),
    };
    report.expect("a report is plain data")
}
