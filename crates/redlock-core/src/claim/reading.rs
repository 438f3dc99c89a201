use redlock_proto::JobState;

use crate::NodeReport;

/// A reading of a job from the nodes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let reading = redlock.job_status("close-day").await?;
/// if let Some(state) = reading.state() {
///     println!("the newest claimed tick: {:?}", state.watermark);
/// }
/// for report in reading.reports() {
///     println!("{report}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobReading {
    state: Option<JobState>,
    reports: Vec<NodeReport>,
}

impl JobReading {
    pub(crate) fn new(state: Option<JobState>, reports: Vec<NodeReport>) -> Self {
        Self { state, reports }
    }

    /// Returns the state of the job according to a majority; `None` if too few nodes gave a usable answer.
    pub fn state(&self) -> Option<&JobState> {
        self.state.as_ref()
    }

    /// Returns the part of each node in the reading; empty if the client is closed.
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }
}
