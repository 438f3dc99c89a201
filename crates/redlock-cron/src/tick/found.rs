use redlock_core::Tick;

/// The run that went on when this replica got the job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// That of a tick.
    OfTick(Tick),
    /// The one that somebody asked for at that moment.
    OnRequest(Tick),
}
