//! What the driver tells an application's recorder, after all that is decided is done.

use super::{
    driver::Driver,
    link::{LinkState, NodeLink},
};
use crate::meter::LockMeter;

impl Driver {
    /// Has something counted of a lease later: a recorder that is slow withholds no deadline.
    pub(super) fn count(&mut self, lease: u64, count: fn(&LockMeter)) {
        if let Some(shared) = self.leases.get(&lease) {
            self.counts.push((shared.meter().clone(), count));
        }
    }

    /// Counts what is to be counted, and says how nodes stand, if somebody measures it.
    pub(super) fn measure(&mut self) {
        for (meter, count) in self.counts.drain(..) {
            count(&meter);
        }
        let now = self.now();
        if !self.meter.is_due(now.clock) {
            return;
        }
        // Before it has tried each node, a client knows less than others of its process, which may have said more.
        let is_trying = |link: &NodeLink| link.state() == LinkState::Connecting;
        if self.links.iter().any(is_trying) {
            return;
        }
        let theirs = self.client.node_time(now);
        let offset = theirs.map(|theirs| {
            let (ours, theirs) = (now.wall as f64, theirs.as_micros() as f64);
            (ours - theirs) / 1e6
        });
        let is_up = |link: &NodeLink| link.state() == LinkState::Up;
        let up: Vec<_> = self.links.iter().map(is_up).collect();
        let standing = self.client.standing(now);
        self.meter.look(&up, &standing, offset, now.clock);
    }
}
