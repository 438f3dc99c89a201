//! A check of any of the worlds, and the line about it.

use std::{
    fmt::{Debug, Display},
    io::{self, Write},
    time::Instant,
};

use redlock_model::{
    Check, LeaseCheck, LedgerCheck, LineCheck, NamedCheck, Report, TickCheck, Verdict,
};

/// A check of any of the worlds.
pub(crate) trait AnyCheck: Debug + Display {
    /// Explores the world.
    fn explore(&self) -> CheckOutcome;
}

/// The outcome of a check.
#[derive(Debug)]
pub(crate) struct CheckOutcome {
    pub(crate) verdict: Verdict,
    states: usize,
    transitions: u64,
    bytes: usize,
    /// The complaint if too little happened: where nothing happens, nothing goes wrong.
    pub(crate) missing: Option<&'static str>,
    /// The complaint about a breach.
    pub(crate) breach: &'static str,
}

/// Runs a check, and writes a line about it: its states, transitions and bytes, and how long it took.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a search took, for its reader only"
)]
pub(crate) fn timed(check: &dyn AnyCheck, output: &mut impl Write) -> io::Result<CheckOutcome> {
    let started = Instant::now();
    let found = check.explore();
    let verdict = match found.verdict {
        Verdict::Holds => "holds",
        Verdict::Violated(_) => "violated",
        _ => "unfinished",
    };
    let (states, transitions, mib) = (found.states, found.transitions, found.bytes >> 20);
    let seconds = started.elapsed().as_secs_f64();
    writeln!(
        output,
        "{verdict:<10} {states:>9} states {transitions:>10} transitions {seconds:>6.1} s {mib:>5} MiB  {check}",
    )?;
    output.flush()?;
    Ok(found)
}

impl AnyCheck for Check {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let counts = report.counts();
        let is_idle = counts.agreed == 0
            || counts.written_back == 0
            || self.scope().crashes() > 0 && counts.opened == 0;
        let missing = "no client finished in one of the ways there are, or no node voted again";
        let breach = "tokens do not keep their order";
        CheckOutcome::of(&report, is_idle.then_some(missing), breach)
    }
}

impl AnyCheck for TickCheck {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let is_idle = report.counts().started == 0;
        let missing = is_idle.then_some("no tick was started");
        CheckOutcome::of(&report, missing, "a tick is started twice")
    }
}

impl AnyCheck for LedgerCheck {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let counts = report.counts();
        let is_idle = counts.ended == 0 || counts.again == 0 || counts.backfilled == 0;
        let missing = "no run ended, none was started again, or none was backfilled";
        let breach = "retries, backfills and requests do not heed each other";
        CheckOutcome::of(&report, is_idle.then_some(missing), breach)
    }
}

impl AnyCheck for LeaseCheck {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let is_idle = report.counts().settled == 0;
        let missing = is_idle.then_some("no client had a lease");
        CheckOutcome::of(&report, missing, "leases or their tokens are not in order")
    }
}

impl AnyCheck for LineCheck {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let is_idle = report.counts().settled == 0 || report.counts().heard == 0;
        let missing = is_idle.then_some("no node gave a key");
        let breach = "leases or their tokens are not in order, or a caller waits for ever";
        CheckOutcome::of(&report, missing, breach)
    }
}

impl AnyCheck for NamedCheck {
    fn explore(&self) -> CheckOutcome {
        let report = self.run();
        let is_idle = report.counts().granted == 0 || report.counts().quarantines == 0;
        let missing = is_idle.then_some("no client had a lease, or no quarantine began");
        CheckOutcome::of(
            &report,
            missing,
            "two servers gave a lease at the same time",
        )
    }
}

impl CheckOutcome {
    fn of<C, T: Display>(
        report: &Report<C, T>,
        missing: Option<&'static str>,
        breach: &'static str,
    ) -> Self {
        Self {
            verdict: match report.verdict() {
                Verdict::Holds => Verdict::Holds,
                Verdict::Violated(trace) => Verdict::Violated(trace.to_string()),
                _ => Verdict::Unfinished,
            },
            states: report.states(),
            transitions: report.transitions(),
            bytes: report.bytes(),
            missing,
            breach,
        }
    }
}
