//! A node: the model of one, the clock it runs on, and what has become of its data.

use redlock_proto::{NodeTime, RunId, Store};

use super::shadow::Shadow;
use crate::{
    clock::Clock,
    fault::Data,
    setup::{Birth, Micros},
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
    /// Which life of its data it is; another one has forgotten something.
    pub(super) life: u32,
    /// Whether it ever lost data.
    pub(super) has_lost: bool,
    /// By how much its clock is behind for a while.
    pub(super) astray: Micros,
    /// By how much it will be, and for how long, once the node is told to vote.
    pub(super) wavers: Option<(Micros, Micros)>,
    /// How often it crashed, which ends every connection.
    pub(super) crashes: u32,
    /// How often it was started.
    runs: u32,
    index: usize,
    copy: Option<(Store, Shadow)>,
    keys: usize,
}

impl Server {
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
            life: 0,
            has_lost: false,
            astray: 0,
            wavers: None,
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
        if let Some((store, shadow)) = &mut self.copy {
            store.expire(time);
            shadow.expire(time.as_millis());
        }
        self.clock.step(by);
    }

    /// Keeps a copy of its data.
    pub(super) fn copy(&mut self) {
        self.copy = Some((self.store.clone(), self.shadow.clone()));
    }

    /// Another run begins, with what is left of the data.
    pub(super) fn restart(&mut self, data: Data) {
        self.runs += 1;
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

    /// Forgets everything.
    pub(super) fn flush(&mut self) {
        self.store.flush();
        self.shadow = Shadow::new(self.keys);
        self.forgot();
    }

    fn forgot(&mut self) {
        self.life += 1;
        self.has_lost = true;
    }
}
