//! The loop: events in, requests out.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use redlock_proto::{Client, ClientConfig, Instant, Now, Slab, SlabMap};
use tokio::sync::{mpsc, oneshot};

use super::{
    AcquireCaller, DriverCommand, entropy::Source, hand_overs::HandOver, handle::WeakEngineHandle,
    link::NodeLink, log::Origin, subscription::SubscriptionEvent,
};
use crate::names::NodeNames;
use crate::{
    Lease, LossReason,
    clock::Clock,
    meter::{LockMeter, Meter},
};

/// What the driver needs to know of its client.
#[derive(Debug)]
pub(crate) struct EngineConfig {
    pub(crate) client: ClientConfig,
    pub(crate) clock: Clock,
    pub(crate) meter: Meter,
    /// What the log calls the namespace.
    pub(crate) namespace: Arc<str>,
    /// Where randomness comes from, if not from the operating system.
    pub(crate) seed: Option<u64>,
}

/// The task that carries out what the protocol decides, and tells it what happens.
pub(super) struct Driver {
    pub(super) client: Client,
    pub(super) origin: Origin,
    pub(super) meter: Meter,
    /// The counts of leases that are not yet reported.
    pub(super) counts: Vec<Count>,
    pub(super) names: NodeNames,
    pub(super) majority: usize,
    pub(super) closing: bool,
    pub(super) clock: Clock,
    pub(super) handles: WeakEngineHandle,
    /// The callers that wait for acquisitions, by the number of the acquisition.
    pub(super) waiting: SlabMap<AcquireCaller>,
    pub(super) leases: SlabMap<Lease>,
    /// The numbers that neither an acquisition nor a lease uses any more, and that the driver must return.
    pub(super) over: Vec<u64>,
    /// The commands that the protocol has not answered yet.
    pub(super) asked: Slab<DriverCommand>,
    pub(super) links: Vec<NodeLink>,
    /// The commands of callers; `None` once the last of them is gone.
    commands: Option<mpsc::UnboundedReceiver<DriverCommand>>,
    /// Whether callers may ask for more than was heard at once.
    has_more: bool,
    closers: Vec<oneshot::Sender<()>>,
    /// What a link rings when it has something to say.
    rung: Arc<AtomicWaker>,
    /// Where the connections are registered.
    pub(super) seat: Seat,
    /// Whether it came from the other task, which may have heard what it did not act upon.
    was_moved: bool,
    /// How many turns there were, and how many commands were heard in them, and in all but the last.
    pub(super) turns: u64,
    pub(super) commands_heard: u64,
    commands_before: u64,
    /// In how many turns in a row there was a command, and no other caller.
    lone_turns: u32,
    /// After how many of them the runtime drives.
    enough_turns: u32,
    /// Whether a lease was asked for that is too short to wait until the thread takes the driver back.
    is_hasty: bool,
}

/// Where a task runs that can drive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Seat {
    /// On the client's thread, or on the only runtime that there is.
    Thread,
    /// On the runtime in which the client was built.
    Runtime,
}

/// What is to be counted of a lease.
pub(super) type Count = (LockMeter, fn(&LockMeter));

impl Driver {
    pub(super) fn new(
        config: EngineConfig,
        origin: Origin,
        handles: WeakEngineHandle,
        names: NodeNames,
        links: Vec<NodeLink>,
        rung: Arc<AtomicWaker>,
        commands: mpsc::UnboundedReceiver<DriverCommand>,
    ) -> Self {
        let EngineConfig {
            client,
            clock,
            seed,
            meter,
            ..
        } = config;
        let entropy = seed.map_or(Source::System, Source::Seed);
        Self {
            majority: client.quorum.majority(),
            client: Client::new(client, entropy),
            origin,
            meter,
            counts: Vec::new(),
            names,
            closing: false,
            clock,
            handles,
            waiting: SlabMap::default(),
            leases: SlabMap::default(),
            over: Vec::new(),
            asked: Slab::default(),
            links,
            commands: Some(commands),
            has_more: false,
            closers: Vec::new(),
            rung,
            seat: Seat::Thread,
            was_moved: false,
            turns: 0,
            commands_heard: 0,
            commands_before: 0,
            lone_turns: 0,
            enough_turns: LONE_TURNS,
            is_hasty: false,
        }
    }

    /// Returns whether no handle is left and everything is cleaned up.
    pub(super) fn is_over(&self) -> bool {
        self.commands.is_none() && self.client.is_clean()
    }

    /// Hears what has come by now, and does what is due.
    ///
    /// Returns the time at which something turned out to be due: then all that has arrived by that time must be there
    /// to be heard, and this is called again with the time.
    pub(super) fn act(&mut self, cx: &mut Context<'_>, heard_until: Option<Now>) -> Option<Now> {
        self.hear(cx);
        let now = heard_until.unwrap_or_else(|| self.now());
        let is_due = || self.next_due().is_some_and(|due| due <= now.clock);
        if heard_until.is_none() && (self.has_more || is_due()) {
            return Some(now);
        }
        self.carry_out(now);
        self.handles.give_back(&mut self.over);
        self.answer_closers();
        self.measure();
        self.turns += 1;
        None
    }

    /// Has the connections woken by the runtime of this task from now on; `false` if some cannot be.
    pub(super) fn move_here(&mut self, seat: Seat) -> bool {
        self.seat = seat;
        self.was_moved = true;
        self.lone_turns = 0;
        for link in &mut self.links {
            // The thread takes what it can: the others are there already.
            if !link.move_here() && seat == Seat::Runtime {
                return false;
            }
        }
        true
    }

    /// Returns whether something is there to be heard, or is due.
    pub(super) fn is_kept_waiting(&self, now: Instant) -> bool {
        let commands = self.commands.as_ref();
        commands.is_some_and(|commands| !commands.is_empty() || commands.is_closed())
            || self.links.iter().any(NodeLink::has_rung)
            || self.next_due().is_some_and(|due| due <= now)
    }

    /// Chooses where to drive after a turn.
    pub(super) fn next_seat(&mut self) -> Seat {
        let callers = self.waiting.len() + self.asked.len();
        let stays = self.is_hasty
            || self.leases.len() > MOST_LEASES
            || !self.links.iter().all(NodeLink::is_settled);
        let most = match self.seat {
            Seat::Thread => 1,
            Seat::Runtime => 2,
        };
        if stays || callers > most {
            self.lone_turns = 0;
            return Seat::Thread;
        }
        let has_command = self.commands_heard != self.commands_before;
        self.commands_before = self.commands_heard;
        self.lone_turns += u32::from(has_command);
        if self.lone_turns > self.enough_turns {
            Seat::Runtime
        } else {
            self.seat
        }
    }

    /// Lends the driver to the runtime less readily, because it kept something waiting.
    pub(super) fn distrust_runtime(&mut self) {
        self.enough_turns = (2 * self.enough_turns).min(MOST_TURNS);
    }

    /// Hears what nodes have answered, and what callers ask for; returns whether that was anything.
    pub(super) fn hear(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_news = self.see_hand_overs() | std::mem::take(&mut self.was_moved);
        // Before the look, so that no ring is missed.
        self.rung.register(cx.waker());
        for node in 0..self.links.len() {
            if self.links[node].has_rung() {
                is_news |= self.links[node].hear();
                is_news |= self.tell(node);
                is_news |= self.tell_messages(node);
            }
        }
        self.has_more = false;
        let mut left = COMMANDS;
        while let Some(commands) = &mut self.commands
            && let Poll::Ready(command) = commands.poll_recv(cx)
        {
            is_news = true;
            self.commands_heard += 1;
            // What a holder asks for comes after the hand-over to it.
            self.see_hand_overs();
            match command {
                Some(command) => self.on_command(command),
                None => {
                    self.commands = None;
                    self.close(None);
                }
            }
            left -= 1;
            if left == 0 {
                self.has_more = true;
                break;
            }
        }
        is_news
    }

    /// Does what is due at `now`, and has the links do it, until nothing new comes of it.
    ///
    /// All that had arrived by then was heard before.
    fn carry_out(&mut self, now: Now) {
        for (node, link) in self.links.iter().enumerate() {
            self.client.on_backlog(node, link.backlog());
        }
        self.client.on_timer(now);
        self.follow();
        for link in &mut self.links {
            link.on_timer(now.clock);
        }
        let mut is_news = true;
        while std::mem::take(&mut is_news) {
            // What is asked of all nodes is on its way to all of them before any answer is heard.
            for link in &mut self.links {
                link.carry_out();
            }
            for node in 0..self.links.len() {
                is_news |= self.tell(node);
            }
        }
    }

    /// Tells the protocol what happened on the link to a node; returns whether that was anything.
    fn tell(&mut self, node: usize) -> bool {
        let Some(first) = self.links[node].poll_event() else {
            return false;
        };
        // Read after all of it was heard.
        let now = self.now();
        let mut next = Some(first);
        while let Some(event) = next {
            event.tell(&mut self.client, node, now);
            next = self.links[node].poll_event();
        }
        self.follow();
        true
    }

    /// Tells the protocol of a node's messages; returns whether there were any.
    fn tell_messages(&mut self, node: usize) -> bool {
        let mut is_news = false;
        while let Some(event) = self.links[node].poll_message() {
            is_news = true;
            match event {
                SubscriptionEvent::Begins => self.client.on_listening(node, true, self.now()),
                SubscriptionEvent::Ends(_) => self.client.on_listening(node, false, self.now()),
                SubscriptionEvent::Gift(gift) => self.client.on_gift(node, gift, self.now()),
            }
        }
        if is_news {
            self.follow();
        }
        is_news
    }

    fn on_command(&mut self, command: DriverCommand) {
        let now = self.now();
        match command {
            DriverCommand::Acquire {
                id,
                acquire,
                claim,
                caller,
            } => {
                self.waiting.insert(id, caller);
                self.is_hasty |= acquire.timing.ttl() <= SHORT_TTL;
                match claim {
                    Some(claim) => self.client.claim(id, acquire, *claim, now),
                    None => self.client.acquire(id, acquire, now),
                }
            }
            DriverCommand::Upgrade { id, lease, caller } => {
                self.waiting.insert(id, caller);
                self.client.upgrade(lease, id, now);
            }
            DriverCommand::Finish {
                lease,
                outcome,
                took,
                note,
            } => self.client.finish(lease, outcome, took, note, now),
            DriverCommand::ReadJob {
                ref job,
                ref lock,
                at,
                ..
            } => {
                let (job, lock) = (job.clone(), lock.clone());
                let ask = self.asked.add(command);
                self.client.read_job(ask, &job, &lock, at, now);
            }
            DriverCommand::Abandon { id } => {
                self.no_longer_waiting(id);
                self.client.abandon(id, now);
            }
            DriverCommand::Extend { lease, .. } => {
                let ask = self.asked.add(command);
                self.client.extend(lease, ask, now);
            }
            DriverCommand::Downgrade { lease, .. } => {
                let ask = self.asked.add(command);
                self.client.downgrade(lease, ask, now);
            }
            DriverCommand::Release { lease, ref answer } => {
                let is_asked = answer.is_some();
                self.forget(lease);
                let ask = is_asked.then(|| self.asked.add(command));
                self.client.release(lease, ask, now);
            }
            DriverCommand::Leave { lease } => {
                self.forget(lease);
                self.client.leave(lease);
            }
            // It has seen them before this.
            DriverCommand::SeeHandOvers => {}
            DriverCommand::Bless { .. } => {
                let ask = self.asked.add(command);
                self.client.bless(ask, now);
            }
            // The caller may have stopped waiting.
            DriverCommand::Standing { answer } => drop(answer.send(self.client.standing(now))),
            DriverCommand::NodeTime { answer } => drop(answer.send(self.client.node_time(now))),
            DriverCommand::Close { answer } => self.close(Some(answer)),
        }
        self.follow();
    }

    /// Tells the protocol of the leases that have changed hands; returns whether there were any.
    ///
    /// The driver does this first: before a timer that would extend a lease without a holder, and before an answer that
    /// the next holder must learn of.
    fn see_hand_overs(&mut self) -> bool {
        let changes = self.handles.hand_overs().take();
        if changes.is_empty() {
            return false;
        }
        let now = self.now();
        for (lease, change) in changes {
            match change {
                HandOver::Parked => self.client.park(lease),
                HandOver::Resumed(next) => self.resume(lease, &next, now),
            }
        }
        self.follow();
        true
    }

    /// Takes note of the next holder of a lease in this process.
    fn resume(&mut self, lease: u64, next: &Lease, now: Now) {
        let Some(entry) = self.leases.get_mut(lease) else {
            return next.end(LossReason::Expired);
        };
        *entry = next.clone();
        match self.client.resume(lease, now) {
            Some(deadline) if next.extend_to(deadline) => {}
            Some(_) => self.client.expire(lease, now),
            None => next.end(LossReason::Expired),
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            clock: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    fn close(&mut self, answer: Option<oneshot::Sender<()>>) {
        self.closing = true;
        self.closers.extend(answer);
        self.client.close(self.now());
        self.follow();
    }

    fn answer_closers(&mut self) {
        if !self.closers.is_empty() && self.client.is_clean() {
            for closer in self.closers.drain(..) {
                // The caller may have stopped waiting.
                let _ = closer.send(());
            }
        }
    }

    /// Returns how long it can sleep if nothing happens before.
    ///
    /// While a caller has or wants something, the clock is looked at often: timers stop while the machine is suspended,
    /// and the client's clock does not.
    pub(super) fn until_next_timer(&self) -> Duration {
        let now = self.clock.now();
        let next = self.next_due();
        let wait = next.map_or(LOOK_EVERY, |due| due.saturating_since(now));
        if self.is_idle() {
            wait
        } else {
            wait.min(LOOK_EVERY)
        }
    }

    /// Returns when something is due, if nothing happens before.
    fn next_due(&self) -> Option<Instant> {
        let links = self.links.iter().map(NodeLink::next_timer);
        self.client.next_timer().into_iter().chain(links).min()
    }

    /// Returns whether no caller has a lease or waits for anything.
    fn is_idle(&self) -> bool {
        self.leases.is_empty()
            && self.waiting.is_empty()
            && self.asked.is_empty()
            && self.client.is_clean()
    }
}

/// How often the clock is looked at while deadlines depend on it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How many commands are heard at once: nodes are heard in between.
const COMMANDS: u32 = 1024;

/// In how many turns in a row a caller must be alone before its runtime drives.
const LONE_TURNS: u32 = 32;

/// The same where the runtime kept the driver waiting again and again: some seconds of a caller without a pause.
const MOST_TURNS: u32 = 1 << 15;

/// With more leases the thread drives: to renew all of them takes a part of a thread's time.
const MOST_LEASES: usize = 64;

/// A lease of up to this time to live is renewed by the thread, at a third of this.
///
/// Of a longer one, a runtime that is blocked delays a renewal by a tenth of the time left for it, or less.
const SHORT_TTL: Duration = Duration::from_secs(1);
