use std::time::Duration;

/// The order in which callers of several processes have a key that they wait for.
///
/// All callers of a key should use the same.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fairness {
    /// A process hands its lease from caller to caller for up to a quarter of a second, and then lets others have it that
    /// came before its next caller.
    ///
    /// A hand-over inside a process costs no round trip, so this is for throughput.
    #[default]
    Cohort,
    /// First come, first served, over all processes: a process hands no lease on, and its next caller enters the line before
    /// the process lets the key go.
    ///
    /// The order is not promised: callers that came up to a round trip apart may be served in any order, and a node that was
    /// away, or a full line, may change it.
    /// Each hand-over asks the nodes, which takes up to three round trips.
    /// An acquire of a free key costs the nodes more, because it asks all of them, and by the script.
    Strict,
}

impl Fairness {
    /// The time for which callers of one process hand a lease on, before the next one contends: 250 ms.
    pub const LONGEST_COHORT: Duration = Duration::from_millis(250);
}
