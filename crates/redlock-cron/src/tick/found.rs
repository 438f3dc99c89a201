use redlock_core::Tick;

/// The run that went on when this replica got the job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// The run of a tick.
    OfTick(Tick),
    /// The run that was requested at this moment.
    OnRequest(Tick),
}
