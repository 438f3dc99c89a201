//! The series of a job's record besides its ticks.
//!
//! Each attempt of a tick is a line of the series of ticks.

use std::time::Duration;

use redlock_core::Series;

/// The moments of runs that this replica was asked for.
pub(crate) const MANUAL: Series = Series::new('m');
/// The moments at which a run of the job, or a backfill, was requested of all replicas.
pub(crate) const REQUESTS: Series = Series::new('q');
/// The runs that replicas started for such requests, at the same moments.
pub(crate) const REQUESTED: Series = Series::new('r');
/// The beginnings of backfills, and the moments at which an operator ended one.
pub(crate) const BACKFILLS: Series = Series::new('b');
/// The runs of their ticks, at the moments after the beginning.
pub(crate) const BACKFILLED: Series = Series::new('f');
/// The moments at which the job was paused and resumed.
pub(crate) const PAUSES: Series = Series::new('p');
/// The moments at which an operator asked for the end of the job's runs.
pub(crate) const STOPS: Series = Series::new('s');
/// The ticks and moments for which runs before them must end.
pub(crate) const CANCELS: Series = Series::new('c');
/// The moments at which a success of the job was expected, and overdue.
pub(crate) const SUCCESSES: Series = Series::new('e');
/// The moments at which the job was registered, of which nodes remember the last.
pub(crate) const KNOWN: Series = Series::new('K');

/// The time within which a replica starts a run that was [requested](crate::request_run), by the nodes' clocks: a
/// minute.
pub const REQUEST_LIFETIME: Duration = Duration::from_secs(60);
