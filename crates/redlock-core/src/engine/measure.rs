//! The driver's measurements for an application's recorder, reported after the driver has done its other work.

use super::{
    driver::Driver,
    link::{LinkState, NodeLink},
};
use crate::meter::{LockMeter, Offsets};

impl Driver {
    /// Counts something of a lease later, so that a slow recorder delays no deadline.
    pub(super) fn count(&mut self, lease: u64, count: fn(&LockMeter)) {
        if let Some(shared) = self.leases.get(lease) {
            self.counts.push((shared.meter().clone(), count));
        }
    }

    /// Counts an attempt that follows another.
    pub(super) fn retries(&mut self, acquisition: u64) {
        if let Some(waiting) = self.waiting.get_mut(acquisition) {
            waiting.attempts += 1;
            // A search asks for many slots at once, and counts no retries.
            if !waiting.is_part {
                let meter = waiting.subject.meter.clone();
                self.counts.push((meter, LockMeter::retries));
            }
        }
    }

    /// Reports the pending counts to the recorder, and the state of the nodes if that is due.
    pub(super) fn measure(&mut self) {
        for (meter, count) in self.counts.drain(..) {
            count(&meter);
        }
        if !self.meter.is_due(|| self.clock.now()) {
            return;
        }
        // Before it has tried each node, a client knows less than others of its process, which may have reported more.
        let is_trying = |link: &NodeLink| link.state() == LinkState::Connecting;
        if self.links.iter().any(is_trying) {
            return;
        }
        let now = self.now();
        let common = self.client.node_time(now);
        // From the common time on.
        let off = |micros: u64| Some((micros as f64 - common?.as_micros() as f64) / 1e6);
        let time_of = |node| self.client.time_of(node, now);
        let offsets = Offsets {
            own: off(now.wall),
            nodes: (0..self.links.len())
                .map(|node| time_of(node).and_then(|time| off(time.as_micros())))
                .collect(),
        };
        let is_up = |link: &NodeLink| link.state() == LinkState::Up;
        let up: Vec<_> = self.links.iter().map(is_up).collect();
        let standing = self.client.standing(now);
        self.meter.look(&up, &standing, &offsets, now.clock);
    }
}
