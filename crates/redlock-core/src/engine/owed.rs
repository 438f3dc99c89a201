//! The releases that a node has not confirmed.

use std::{collections::VecDeque, time::Duration};

use redlock_proto::RequestError;
use tokio::time::Instant;

use super::{flow::BEAT, link::Op};

/// Releases that met a broken connection or an error, to be made again.
///
/// They are made at once the first time, and then once a second, until the node has answered or the
/// key has ended by itself.
#[derive(Debug, Default)]
pub(super) struct Owed {
    releases: VecDeque<(Op, RequestError)>,
    due: Option<Instant>,
}

impl Owed {
    /// Keeps a release; returns one that is not worth keeping, with its last error.
    pub(super) fn add(&mut self, mut op: Op, error: RequestError) -> Option<(Op, RequestError)> {
        let pause = match op.repeated {
            false => Duration::ZERO,
            true => BEAT,
        };
        op.repeated = true;
        if is_over(&op) {
            return Some((op, error));
        }
        let due = Instant::now() + pause;
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.releases.push_back((op, error));
        (self.releases.len() > MOST_OWED).then(|| self.releases.pop_front())?
    }

    /// There is a new connection: whatever is owed is due, in the form that another connection needs.
    pub(super) fn on_connected(&mut self) {
        for (op, _) in &mut self.releases {
            op.request = op.request.clone().over_another_connection();
        }
        if !self.releases.is_empty() {
            self.due = Some(Instant::now());
        }
    }

    /// When the next releases are due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what is due, and what has become pointless.
    pub(super) fn take_due(&mut self) -> (Vec<Op>, Vec<(Op, RequestError)>) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return (Vec::new(), Vec::new());
        }
        self.due = None;
        let (over, due): (Vec<_>, Vec<_>) =
            self.releases.drain(..).partition(|(op, _)| is_over(op));
        (due.into_iter().map(|(op, _)| op).collect(), over)
    }
}

/// Whether the key has ended by itself.
fn is_over(op: &Op) -> bool {
    op.owed_until.is_none_or(|until| until <= Instant::now())
}

/// What a node is owed is bounded; the oldest releases are those that end by themselves first.
const MOST_OWED: usize = 10_000;
