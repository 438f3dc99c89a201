//! A client: the state machine under test, the clocks that it reads, and what its users do with it.

use std::time::Duration;

use redlock_proto::{Client, Instant, LeaseTerms, LockMode, Now, Slab, Ticket, TokenBlock};

use super::{agenda::Due, callers::Callers, link::Degraded};
use crate::{
    clock::Clock,
    setup::{Micros, micros},
};

/// A process with a client in it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) client: Client,
    pub(super) is_alive: bool,
    /// The number under which nodes know it, once it wants to hear of them.
    pub(super) number: Option<u64>,
    /// Which process it is in its place; what was due for another is void.
    pub(super) life: u32,
    /// It stands still before this, in true time.
    pub(super) paused_until: Micros,
    paused_at: Option<Micros>,
    /// What has come while it stood still.
    pub(super) inbox: Vec<Due>,
    /// For when its own timer is set; `MAX` if it is not.
    pub(super) timer_at: Micros,
    /// What it shows on its clock then.
    pub(super) timer_for: Instant,
    /// The callers that wait for their turn at a key.
    pub(super) callers: Callers,
    /// For each key, what the caller with the turn does.
    pub(super) users: Vec<User>,
    /// The numbers of its acquisitions and leases.
    pub(super) numbers: Slab<()>,
    /// Whether releases are held back until the next caller has asked the nodes.
    pub(super) holds_back: bool,
    /// These: the number of the lease, and of the question.
    pub(super) held_back: Vec<(u64, Option<u64>)>,
    /// The number of the next thing that it is asked for, but for those.
    pub(super) next_ask: u64,
    /// The statuses that it was asked for: what by, of which job, when, and what each node
    /// remembered then.
    pub(super) asked: Vec<(u64, usize, Micros, Vec<Runs>)>,
    /// The number of the last round in which a token was written back.
    pub(super) last_write_back: u64,
    pub(super) is_closed: bool,
    /// The owners that it has given up just now.
    pub(super) given_up: Vec<u32>,
    /// It was told something while it was not asked what it wants done.
    pub(super) has_news: bool,
    /// The node of which it has said that a wall clock stands in for its counters.
    pub(super) degrades: Option<Degraded>,
    /// For how long it stands still once it has asked for something.
    pub(super) stumbles: Option<Micros>,
    /// It has asked for something just now.
    pub(super) has_asked: bool,
    clock: Clock,
    wall: Clock,
    /// By how much the wall clock was set forward in all.
    stepped: i64,
}

/// The tick and token of each run of a job that a node remembers, the newest first.
pub(super) type Runs = Vec<(u64, u64)>;

/// What a caller that has the turn at a key does.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) state: State,
    /// What is due for it is void unless it has this number.
    pub(super) stamp: u32,
    /// For how long the key must rest after the lease that it waits for or has.
    pub(super) rest: Micros,
    /// Whether it may hold it for a limited time only.
    pub(super) is_limited: bool,
    /// The owner of its latest attempt.
    pub(super) owner: Option<u32>,
    /// The tick that it claims or has claimed, in milliseconds, if it is a job's.
    pub(super) tick: u64,
    /// Up to which tick it knows the runs of its job as settled, in milliseconds; 0 if none.
    pub(super) settled: u64,
    /// When it began to wait.
    pub(super) since: Micros,
    /// The place of the caller that has the turn.
    pub(super) ticket: Option<Ticket>,
    /// What that caller has asked for.
    pub(super) terms: Option<LeaseTerms>,
    /// The mode of the lease that it waits for or has.
    pub(super) mode: LockMode,
    /// The upgrade of its shared lease that is under way.
    pub(super) upgrade: Option<Upgrade>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// It rests.
    Idle,
    /// It waits for an acquisition.
    Waiting { id: u64, waiter: u64 },
    /// It has a lease, lost or not.
    Holding(Holding),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) id: u64,
    /// The number of the lease in the history.
    pub(super) lease: u64,
    pub(super) is_lost: bool,
    /// It has no holder until the next caller takes it over.
    pub(super) is_parked: bool,
    /// When it was won from the nodes, on the client's clock.
    pub(super) won_at: Instant,
    /// The tokens of the present holder and those after it.
    pub(super) tokens: TokenBlock,
    /// When its user is done with it.
    pub(super) done_at: Micros,
    /// How often its user asks for an extension; 0 for never.
    pub(super) extends_every: Micros,
    /// When its user lets others share it, or tries to have it alone, if it does.
    pub(super) changes_at: Option<Micros>,
    /// Whether its user looks at the deadline and says so when it has passed.
    pub(super) looks: bool,
    pub(super) deadline: Instant,
}

/// An upgrade that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upgrade {
    /// The number of the acquisition.
    pub(super) id: u64,
    /// The number of its user's wait for it.
    pub(super) waiter: u64,
    /// Its owner, once it has asked nodes.
    pub(super) owner: Option<u32>,
}

impl Process {
    pub(super) fn new(client: Client, keys: usize, clock: Clock, wall: Clock) -> Self {
        let user = User {
            state: State::Idle,
            stamp: 0,
            rest: 0,
            is_limited: false,
            owner: None,
            tick: 0,
            settled: 0,
            since: 0,
            ticket: None,
            terms: None,
            mode: LockMode::Exclusive,
            upgrade: None,
        };
        Self {
            client,
            is_alive: true,
            number: None,
            life: 0,
            paused_until: 0,
            paused_at: None,
            inbox: Vec::new(),
            timer_at: Micros::MAX,
            timer_for: Instant::ORIGIN,
            callers: Callers::new(keys),
            users: vec![user; keys],
            numbers: Slab::default(),
            holds_back: false,
            held_back: Vec::new(),
            next_ask: 1,
            asked: Vec::new(),
            last_write_back: u64::MAX,
            is_closed: false,
            given_up: Vec::new(),
            has_news: false,
            degrades: None,
            stumbles: None,
            has_asked: false,
            clock,
            wall,
            stepped: 0,
        }
    }

    /// Its wall clock is set.
    pub(super) const fn step_wall(&mut self, by: i64) {
        self.wall.step(by);
        self.stepped += by;
    }

    /// Its wall clock is set to so much more than it would show had it never been set.
    pub(super) const fn set_wall(&mut self, ahead: i64) {
        self.step_wall(ahead - self.stepped);
    }

    /// Another process in its place, on the same machine, whose wall clock was set meanwhile.
    pub(super) fn succeed(&mut self, client: Client, wall: Option<Clock>) {
        let stepped = if wall.is_some() { 0 } else { self.stepped };
        let wall = wall.unwrap_or(self.wall);
        let mut next = Self::new(client, self.users.len(), self.clock, wall);
        next.stepped = stepped;
        let stamps: Vec<u32> = self.users.iter().map(|user| user.stamp + 1).collect();
        let life = self.life + 1;
        *self = Self { life, ..next };
        for (user, stamp) in self.users.iter_mut().zip(stamps) {
            user.stamp = stamp;
        }
    }

    /// Returns what it reads on its clocks.
    pub(super) fn now(&self, time: Micros) -> Now {
        Now {
            clock: Instant::from_origin(Duration::from_micros(self.clock.reading(time))),
            wall: self.wall.reading(time),
        }
    }

    /// Returns the first true time at which its clock shows at least this.
    pub(super) fn when(&self, instant: Instant) -> Micros {
        let since = instant.since_origin();
        let rounded_up = micros(since + Duration::from_nanos(999));
        self.clock.when(rounded_up)
    }

    /// Returns whether it has not gone on yet: what is due at the very moment at which it does comes after that.
    pub(super) const fn stands_still(&self) -> bool {
        self.paused_at.is_some()
    }

    pub(super) fn is_paused(&self, time: Micros) -> bool {
        self.paused_until > time
    }

    /// Stands still.
    pub(super) fn pause(&mut self, from: Micros, until: Micros) {
        self.paused_at.get_or_insert(from);
        self.paused_until = self.paused_until.max(until);
    }

    /// Goes on; returns for how long it stood still, if it did.
    pub(super) fn wake(&mut self, now: Micros) -> Option<Micros> {
        self.paused_at.take().map(|paused_at| now - paused_at)
    }
}
