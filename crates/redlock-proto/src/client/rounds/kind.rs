use std::{sync::Arc, time::Duration};

use super::super::{Ask, job_state::JobAnswers};
use crate::{
    Attempt, ClockReading, Extension, Instant, Lock, NodeTime, Release, RunId, Survey, Timing, Verb,
};

/// What a round is for, and how far it is.
#[derive(Debug)]
pub(in super::super) enum RoundKind {
    Attempt {
        acquisition: u64,
        lock: Arc<Lock>,
        attempt: Attempt,
        /// What the nodes would be asked that it has not asked, if there are any, and its time limit as a whole.
        held_back: Option<(Verb, Duration)>,
    },
    /// An attempt that was decided; its late outcomes concern the lease of this owner, if it became one.
    Decided {
        lease: Option<(u64, Arc<Lock>)>,
        /// Whether votes may still join those that confirm it, also of nodes that have answered.
        is_settling: bool,
    },
    /// Nodes that have granted confirm the token, and the tick of a claim; the lease is handed out then.
    WriteBack {
        lease: u64,
        lock: Arc<Lock>,
        extension: Extension,
    },
    Extension {
        lease: u64,
        extension: Extension,
        ask: Option<Ask>,
        /// Whether it asks a majority only, and the others in a round of their own if that comes to nothing.
        is_narrow: bool,
        repeat: Repeat,
    },
    /// Nodes that had lost the key are given it again, or those that never had it are asked for it.
    Give { lease: u64 },
    Release {
        release: Release,
        ask: Option<Ask>,
        ends: Instant,
    },
    /// Nodes are asked to record the end of a run.
    Record,
    /// Nodes are asked what they remember of a job.
    Read { ask: Ask, reading: JobAnswers },
    /// A node is asked where it stands, or what it is.
    Watch,
    /// Nodes are given a sign of life for the callers in line.
    Sign,
    /// Nodes are asked whether another owner has the key still that an acquisition waits for in line, since this attempt.
    Recheck { acquisition: u64, attempt: u64 },
    /// Every node is asked for its counters, to find the floor of one whose quarantine began at `since`.
    Survey { survey: Survey, since: NodeTime },
    /// Every node is asked for its counters, to bless those that do not vote.
    Bless { survey: Survey, ask: Ask },
    /// A node that refused to write is asked to write something.
    Probe,
    /// Nodes are asked to vote.
    Open { ask: Option<Ask>, nodes: Vec<usize> },
}

impl RoundKind {
    /// Makes the kind of an attempt that was decided.
    pub(in super::super) const fn decided(lease: Option<(u64, Arc<Lock>)>) -> Self {
        Self::Decided {
            lease,
            is_settling: false,
        }
    }

    /// Returns whether it gives back what was taken, or says what came of a run.
    pub(super) const fn is_cleanup(&self) -> bool {
        matches!(self, Self::Release { .. } | Self::Record)
    }

    /// Returns whether nodes are asked for their votes.
    pub(in super::super) fn asks_for_a_vote(&self) -> bool {
        matches!(self, Self::Attempt { .. } | Self::Decided { .. })
    }

    /// Returns the lengths of time of the lease that it is about, if the round can move its deadline.
    pub(super) const fn timing(&self) -> Option<Timing> {
        match self {
            Self::Attempt { attempt, .. } => Some(attempt.timing()),
            Self::WriteBack { extension, .. } | Self::Extension { extension, .. } => {
                Some(extension.timing())
            }
            _ => None,
        }
    }

    /// Notes a node's clock as its answer showed it, and which run of a server it is, where votes are counted; and that
    /// it does not vote, where a refusal says that others may have the key.
    pub(super) fn note(
        &mut self,
        node: usize,
        seen: Option<&(RunId, ClockReading)>,
        votes: impl Fn() -> bool,
    ) {
        if let Self::WriteBack { extension, .. } | Self::Extension { extension, .. } = self
            && (seen.is_none() || !votes())
        {
            extension.note_no_vote(node);
        }
        let Some((run, reading)) = seen else {
            return;
        };
        match self {
            Self::Attempt { attempt, .. } => attempt.note(node, run.clone(), *reading),
            Self::WriteBack { extension, .. } | Self::Extension { extension, .. } => {
                extension.note(node, run.clone(), *reading);
            }
            _ => {}
        }
    }

    /// Returns whether votes are counted, or would be if it was not decided.
    pub(super) const fn counts_votes(&self) -> bool {
        matches!(
            self,
            Self::Attempt { .. }
                | Self::Decided { .. }
                | Self::WriteBack { .. }
                | Self::Extension { .. }
        )
    }

    /// Returns whether what this node is asked is a step of its own way back from quarantine.
    pub(in super::super) fn looks_after(&self, node: usize) -> bool {
        match self {
            Self::Survey { survey, .. } => survey.node() == node,
            Self::Watch | Self::Open { .. } => true,
            _ => false,
        }
    }
}

/// The repeats that a round of extension may have: the holder waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Repeat {
    pub(in super::super) left: u8,
    /// When twice the time of the first round is over.
    pub(in super::super) until: Instant,
}

impl Repeat {
    pub(in super::super) fn next(self, now: Instant) -> Option<Self> {
        let left = self.left.checked_sub(1)?;
        (now < self.until).then_some(Self { left, ..self })
    }
}
