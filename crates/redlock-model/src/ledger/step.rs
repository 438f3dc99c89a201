//! Something that happens, and something that must not.

use std::fmt;

use crate::name::Name;

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A tick is due.
    Due { tick: u8 },
    /// An operator asks for a backfill.
    AskBackfill { moment: u8 },
    /// An operator asks for a run.
    AskRun { id: u8 },
    /// A replica crashes, and begins again.
    Crash { by: usize },
    /// A run is lost with its lease.
    Lose { by: usize },
    /// A run ends by itself.
    End { by: usize, well: bool },
    /// A schedule claims a tick.
    ClaimTick { by: usize, tick: u8 },
    /// A replica looks at the runs of a tick; it may find that it is too late for another.
    LookAtRuns { by: usize, tick: u8, late: bool },
    /// A replica claims a further run of a tick, looks at its runs again, and starts it.
    ClaimRun { by: usize, tick: u8, attempt: u8 },
    /// A replica claims that a tick is given up.
    GiveUp { by: usize, tick: u8 },
    /// A replica looks at the plan of a backfill.
    Plan { by: usize, moment: u8 },
    /// A replica finds the ticks of a backfill that are done.
    Count { by: usize, moment: u8 },
    /// A replica looks at the record before it claims a tick of a backfill.
    LookBefore { by: usize, tick: u8 },
    /// A replica claims a tick of a backfill.
    ClaimBackfilled { by: usize, tick: u8 },
    /// A replica sees to it that no other starts this tick as one that was due.
    UseUp { by: usize, tick: u8 },
    /// A replica looks under the lock whether a tick of a backfill is to be started.
    Decide { by: usize, tick: u8 },
    /// A replica hears of requests.
    Hear { by: usize },
    /// A replica claims the run of a request.
    ClaimRequest { by: usize, id: u8 },
}

/// Something that must never happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Broken {
    /// A tick runs again that has ended well.
    RunsAgain(u8),
    /// A tick has two runs at the same time.
    RunsTwice(u8),
    /// A tick is claimed after one whose run was cut short.
    Passed { cut_short: u8, by: u8 },
    /// A tick was missed, and no replica reports it.
    Untold(u8),
    /// A missed tick is reported twice.
    ToldTwice(u8),
    /// A request can no longer be started.
    RequestLost(u8),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Due { tick } => write!(f, "tick {tick} is due"),
            Self::AskBackfill { moment } => write!(f, "backfill {moment} is asked for"),
            Self::AskRun { id } => write!(f, "run {id} is asked for"),
            Self::Crash { by } => write!(f, "{} crashes", Name(by)),
            Self::Lose { by } => write!(f, "the run of {} is lost", Name(by)),
            Self::End { by, well: true } => write!(f, "the run of {} ends well", Name(by)),
            Self::End { by, well: false } => write!(f, "the run of {} fails", Name(by)),
            Self::ClaimTick { by, tick } => write!(f, "{} claims tick {tick}", Name(by)),
            Self::LookAtRuns { by, tick, late } => {
                let late = if late { ", too late for another" } else { "" };
                write!(f, "{} looks at the runs of tick {tick}{late}", Name(by))
            }
            Self::ClaimRun { by, tick, attempt } => {
                write!(f, "{} claims run {attempt} of tick {tick}", Name(by))
            }
            Self::GiveUp { by, tick } => write!(f, "{} gives tick {tick} up", Name(by)),
            Self::Plan { by, moment } => {
                write!(f, "{} looks at the plan of backfill {moment}", Name(by))
            }
            Self::Count { by, moment } => {
                write!(f, "{} counts the ticks of backfill {moment}", Name(by))
            }
            Self::LookBefore { by, tick } => {
                write!(f, "{} looks whether it may backfill tick {tick}", Name(by))
            }
            Self::ClaimBackfilled { by, tick } => {
                write!(f, "{} claims tick {tick} in the backfill", Name(by))
            }
            Self::UseUp { by, tick } => write!(f, "{} uses tick {tick} up", Name(by)),
            Self::Decide { by, tick } => {
                write!(f, "{} decides on tick {tick} of the backfill", Name(by))
            }
            Self::Hear { by } => write!(f, "{} hears of requests", Name(by)),
            Self::ClaimRequest { by, id } => write!(f, "{} claims run {id}", Name(by)),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunsAgain(tick) => write!(f, "tick {tick} runs again, though it had ended well"),
            Self::RunsTwice(tick) => write!(f, "tick {tick} has two runs at the same time"),
            Self::Passed { cut_short, by } => {
                write!(
                    f,
                    "tick {by} passes tick {cut_short}, whose run was cut short"
                )
            }
            Self::Untold(tick) => write!(f, "tick {tick} was missed, and no replica reports it"),
            Self::ToldTwice(tick) => write!(f, "tick {tick} is reported as missed twice"),
            Self::RequestLost(id) => write!(f, "run {id} was asked for, and is never started"),
        }
    }
}
