//! What a check came to.

use crate::{Scope, Trace, step::Step};

/// What a [`Check`](crate::Check) came to.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) scope: Scope,
    pub(crate) states: usize,
    pub(crate) transitions: u64,
    pub(crate) bytes: usize,
    pub(crate) verdict: Verdict,
    agreed: u64,
    written_back: u64,
    opened: u64,
}

/// Whether tokens keep their order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// They do, in all states that can be reached.
    Holds,
    /// They do not; this is one of the shortest ways to a breach.
    Violated(Trace),
    /// There are more states than the limit, and they do in those that were reached.
    Unfinished,
}

impl Report {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            states: 0,
            transitions: 0,
            bytes: 0,
            verdict: Verdict::Holds,
            agreed: 0,
            written_back: 0,
            opened: 0,
        }
    }

    pub(crate) fn count(&mut self, step: &Step) {
        self.transitions += 1;
        match step {
            Step::Settle {
                write_back: None, ..
            } => self.agreed += 1,
            Step::Finish { .. } => self.written_back += 1,
            Step::Open { .. } => self.opened += 1,
            _ => {}
        }
    }

    /// What was explored.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// The number of states that were reached.
    pub const fn states(&self) -> usize {
        self.states
    }

    /// The number of steps that were taken, from all of these states.
    pub const fn transitions(&self) -> u64 {
        self.transitions
    }

    /// How many of the steps gave a client a token that a majority had voted for.
    pub const fn agreed(&self) -> u64 {
        self.agreed
    }

    /// How many of the steps gave a client a token that it had to write back.
    pub const fn written_back(&self) -> u64 {
        self.written_back
    }

    /// How many of the steps let a node vote again that had lost its counters.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// The memory that the states take, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether tokens keep their order.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether tokens keep their order in every state that can be reached.
    pub const fn holds(&self) -> bool {
        matches!(self.verdict, Verdict::Holds)
    }

    /// The way to a breach, if there is one.
    pub const fn trace(&self) -> Option<&Trace> {
        match &self.verdict {
            Verdict::Violated(trace) => Some(trace),
            _ => None,
        }
    }
}
