//! A node: the model of one, the clock it runs on, and what has become of its data.

use redlock_proto::{JobEntry, NodeTime, RunId, Series, Store};

use super::{owners::Gone, shadow::Shadow};
use crate::{
    clock::Clock,
    fault::{Data, Failing},
    setup::{Birth, Micros, RECORD},
};

/// A node of the world.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) store: Store,
    pub(super) shadow: Shadow,
    pub(super) clock: Clock,
    pub(super) is_up: bool,
    /// Nothing is done before this, in true time.
    pub(super) frozen_until: Micros,
    /// For how long it stands still in the middle of the next call.
    pub(super) seizes: Option<Micros>,
    /// The call that it is in the middle of, by its connection, and when it read its clock for it.
    pub(super) seized: Option<(usize, u32, Micros)>,
    /// Which operations fail, and until when.
    pub(super) fails: Option<(Failing, Micros)>,
    /// The runs whose end it refused to store: tick and token.
    pub(super) unstored: Vec<(u64, u64)>,
    /// Which life of its data it is; another one has forgotten something.
    pub(super) life: u32,
    /// Whether it was once not to vote before it is told: it lost data, or was started again.
    pub(super) must_be_told: bool,
    /// Under which epoch it was called last, if others name it.
    pub(super) epoch: Option<u64>,
    /// By how much its clock is behind for a while.
    pub(super) astray: Micros,
    /// By how much it will be, and for how long, once the node is told to vote.
    pub(super) wavers: Option<(Micros, Micros)>,
    /// When its clock was set, and what it showed just before, in milliseconds.
    set: Vec<(Micros, u64)>,
    /// How often it crashed, which ends every connection.
    pub(super) crashes: u32,
    /// How often it was started.
    runs: u32,
    index: usize,
    copy: Option<(Store, Shadow)>,
    keys: usize,
}

impl Server {
    /// Returns the lines of a series that it remembers, the newest first.
    pub(super) fn lines(&self, series: Series) -> impl Iterator<Item = &JobEntry> {
        let lines = self.store.runs(&RECORD.into()).iter();
        lines.filter(move |line| line.series == series)
    }

    pub(super) fn new(index: usize, keys: usize, clock: Clock, birth: Birth) -> Self {
        let run = RunId::from(format!("{index}-0").as_str());
        Self {
            store: match birth {
                Birth::Vouched => Store::vouched_for(run),
                Birth::Unknown | Birth::Blessed => Store::new(run),
            },
            shadow: Shadow::new(keys),
            clock,
            is_up: true,
            frozen_until: 0,
            seizes: None,
            seized: None,
            fails: None,
            unstored: Vec::new(),
            life: 0,
            must_be_told: false,
            epoch: None,
            astray: 0,
            wavers: None,
            set: Vec::new(),
            crashes: 0,
            runs: 0,
            index,
            copy: None,
            keys,
        }
    }

    pub(super) fn time(&self, now: Micros) -> NodeTime {
        NodeTime::from_micros(self.clock.reading(now))
    }

    /// Sets its clock, forward or back.
    ///
    /// What has expired by then is gone for good: a server may have forgotten it already.
    pub(super) fn set_clock(&mut self, by: i64, now: Micros) {
        let time = self.time(now);
        self.store.expire(time);
        self.shadow.expire(time.as_millis());
        self.set.push((now, time.as_millis()));
        self.seized = None;
        if let Some((store, shadow)) = &mut self.copy {
            store.expire(time);
            shadow.expire(time.as_millis());
        }
        self.clock.step(by);
    }

    /// Returns whether its clock was set since a moment.
    pub(super) fn was_set_since(&self, moment: Micros) -> bool {
        self.set.iter().any(|(at, _)| *at >= moment)
    }

    /// Returns whether it must still refuse an owner that it was told is gone.
    ///
    /// It need not once it has lost that data, or once its clock has shown more than it was told: what has ended by
    /// then stays away, even if the clock is set back.
    pub(super) fn must_refuse(&self, gone: Gone, now: Micros) -> bool {
        let since = self.set.iter().filter(|(at, _)| *at >= gone.at);
        let before = since.map(|(_, shown)| *shown).max().unwrap_or(0);
        gone.life == self.life && before.max(self.time(now).as_millis()) <= gone.until
    }

    /// Keeps a copy of its data.
    pub(super) fn copy(&mut self) {
        self.copy = Some((self.store.clone(), self.shadow.clone()));
    }

    /// Another run begins, with what is left of the data.
    pub(super) fn restart(&mut self, data: Data) {
        self.runs += 1;
        self.seized = None;
        let run = RunId::from(format!("{}-{}", self.index, self.runs).as_str());
        match (data, self.copy.clone()) {
            (Data::Kept, _) => self.store.restart(run),
            (Data::Stale, Some((store, shadow))) => {
                self.store = store;
                self.store.restart(run);
                self.shadow = shadow;
                self.shadow.grow_old();
                self.forgot();
            }
            (Data::Lost, _) | (Data::Stale, None) => {
                self.store = Store::new(run);
                self.shadow = Shadow::new(self.keys);
                self.forgot();
            }
        }
    }

    /// Sets its data back to the copy, if there is one, in the same run; returns whether there was.
    pub(super) fn rewind(&mut self, shows: bool) -> bool {
        let Some((mut store, mut shadow)) = self.copy.clone() else {
            return false;
        };
        if shows {
            self.take_data((store, shadow));
            return true;
        }
        store.restart(self.store.run().clone());
        self.store = store;
        shadow.grow_old();
        self.shadow = shadow;
        self.forgot();
        true
    }

    /// Has other data from now on, in the same run: older data of its own, or another server's.
    pub(super) fn take_data(&mut self, (store, mut shadow): (Store, Shadow)) {
        let data = format!("{}-{}", self.index, self.life);
        self.store.take_data_of(&store, &data);
        shadow.grow_old();
        self.shadow = shadow;
        self.forgot();
    }

    /// Returns what a replica of this server has: the copy, if one was kept since it was asked for last.
    pub(super) fn replicated(&mut self) -> (Store, Shadow) {
        let copy = self.copy.take();
        copy.unwrap_or_else(|| (self.store.clone(), self.shadow.clone()))
    }

    /// Forgets everything.
    pub(super) fn flush(&mut self) {
        self.store.flush();
        self.shadow = Shadow::new(self.keys);
        self.forgot();
    }

    fn forgot(&mut self) {
        self.seized = None;
        self.life += 1;
        self.must_be_told = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{MS, SECOND};

    #[test]
    fn a_node_refuses_who_is_gone_until_its_clock_has_shown_so_or_its_data_is_lost() {
        let told = || {
            let mut server = Server::new(0, 1, Clock::new(0, 0), Birth::Vouched);
            // Its clock was ahead before it was told.
            server.set_clock(SECOND.cast_signed(), 10 * MS);
            server.set_clock(-SECOND.cast_signed(), 19 * MS);
            server
        };
        let gone = Gone {
            life: 0,
            at: 20 * MS,
            until: 90,
            address: 0,
            is_tombstoned: true,
        };
        let mut server = told();
        assert!(server.must_refuse(gone, 90 * MS));
        assert!(!server.must_refuse(gone, 91 * MS));
        server.set_clock(50 * MS.cast_signed(), 30 * MS);
        assert!(server.must_refuse(gone, 40 * MS), "it shows 90");
        assert!(!server.must_refuse(gone, 41 * MS));
        server.set_clock(-50 * MS.cast_signed(), 41 * MS);
        assert!(!server.must_refuse(gone, 42 * MS), "it has shown 91");
        let mut server = told();
        server.flush();
        assert!(!server.must_refuse(gone, 30 * MS));
    }
}
