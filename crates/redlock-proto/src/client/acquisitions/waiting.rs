//! Waiting in line: an attempt that nodes have refused stands until it is its turn, and asks again now and then.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        Now,
        context::Context,
        leases::{Leases, send_release},
        rounds::RoundKind,
        timers::Timer,
    },
    Acquisitions,
    acquisition::{Acquisition, AcquisitionPhase},
    attempt, not_acquired,
};
use crate::{
    Attempt, AttemptVerdict, ClockReading, Failure, FailureKind, Fairness, Gift, GiveBack, InLine,
    Instant, KeySet, LinePlace, Lock, LockMode, NodeAnswer, NodeKey, NodeOutcome, NodeVerb, Notice,
    OwnerId, Quarantine, Reply, Request, RetryDecision, Verb,
};

impl Acquisitions {
    /// Has an attempt stand in line that no majority has granted, if it may win by what nodes give it.
    ///
    /// What is no majority is let go soon.
    pub(super) fn stand(&mut self, round: u64, leases: &mut Leases, cx: &mut Context, now: Now) {
        let Some(entry) = cx.rounds.get(round) else {
            return;
        };
        let RoundKind::Attempt {
            acquisition: id,
            attempt,
            ..
        } = &entry.kind
        else {
            return;
        };
        let (id, started, holds) = (*id, entry.started, attempt.votes().granted() > 0);
        if !attempt.stands() {
            return;
        }
        let free_in = attempt.votes().majority_free_in();
        let bits = cx.bits();
        let (in_turn, beat_of_recheck) = (self.in_turn(), self.beat_of_recheck(cx));
        let Some(acquisition) = self.acquisitions.get_mut(id) else {
            return;
        };
        let before = match acquisition.phase {
            AcquisitionPhase::Attempting { .. } => None,
            AcquisitionPhase::InLine { timer, .. } if holds => Some(timer),
            _ => return,
        };
        cx.end_limit(round);
        // A caller that stands in line need not ask again before it is its turn.
        cx.listen(now);
        let wait_until = acquisition.request.wait_until;
        // The key is free once it has expired, though its holder did not let it go.
        let free_at = free_in.map(|free_in| now.clock + free_in);
        let waited = now.clock.saturating_since(acquisition.request.came);
        let rechecks =
            !holds && cx.hears() && acquisition.ahead == 0 && waited >= 2 * beat_of_recheck;
        let asks_at = if holds || !cx.hears() {
            // The votes are split, or the holder lacks what this has, or it only learns of its turn when it asks.
            let retry = acquisition.retry(&cx.config, now);
            let attempts = if holds { 1 } else { acquisition.attempts };
            let least = now.clock + cx.config.node_timeout / 8;
            let least = free_at.map_or(least, |free_at| free_at.min(least));
            match retry.next(
                &Failure::split(free_at),
                attempts,
                wait_until,
                now.clock,
                bits,
            ) {
                RetryDecision::RetryAt(at) if holds => at.max(least),
                // Many callers that do not hear of their turns must not keep nodes from all else.
                RetryDecision::RetryAt(at) => {
                    let in_turn = started + in_turn.min(AFTER_ANOTHER);
                    at.max(least).max(in_turn)
                }
                RetryDecision::GiveUp => wait_until,
            }
        } else {
            let ahead = acquisition.ahead;
            let beat = match ahead {
                0 if rechecks => LONGEST_BEAT,
                0 => (waited / 2).clamp(SHORTEST_BEAT, BEAT_OF_FIRST),
                // It is not told that it is the first as long as it is young.
                _ if waited < YOUNG => YOUNG,
                _ => LONGEST_BEAT,
            };
            let longest = longest_stay(cx.config.keyspace.quarantine()) * 3 / 4;
            let beat = beat.max(in_turn).min(longest);
            // Before its entry ends, also where entries are short.
            let beat = beat_after(started, beat).min(started + longest * 5 / 4);
            // Should those before it die with the holder, it comes to its turn by itself.
            let at = free_at.map_or(beat, |free_at| (free_at + AFTER_ANOTHER * ahead).min(beat));
            // What it is given within a second makes a lease; at the end of the wait, there is no time to ask again.
            let last = acquisition.request.wait_until - LAST_ASK;
            let at = if started < last { at.min(last) } else { at };
            // A holder may extend its lease in its last millisecond, again and again.
            (at.max(now.clock) + A_LITTLE).max(started + cx.config.retry.least())
        };
        let asks_at = before.map_or(asks_at, |before| asks_at.min(before.at()));
        let asks_at = asks_at.min(wait_until);
        if let Some(before) = before {
            cx.timers.cancel(before);
        }
        let at = if rechecks {
            beat_after(started, beat_of_recheck).min(asks_at)
        } else {
            asks_at
        };
        let timer = cx.timers.set(at, Timer::Retry(id));
        if acquisition.moves_up() {
            cx.notice(Notice::MovesUp { acquisition: id });
        }
        acquisition.phase = AcquisitionPhase::InLine {
            round,
            timer,
            asks_at,
        };
        // Lines are alike at all nodes.
        self.widen(round, leases, cx, now);
    }

    /// Goes on with an acquisition that has stood in line for long enough: it asks again, at `asks_at` at the latest, or its
    /// wait is over.
    ///
    /// Before that time, it finds out whether another owner has the key still, which costs nodes less.
    pub(super) fn stood(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        (round, asks_at): (u64, Instant),
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let is_over = now.clock >= acquisition.request.wait_until || cx.is_closing();
        let (hears, nodes) = (cx.hears(), cx.quorum().nodes());
        let beat = self.beat_of_recheck(cx);
        let Some(entry) = cx.rounds.get_mut(round) else {
            return;
        };
        let RoundKind::Attempt { attempt, lock, .. } = &mut entry.kind else {
            return;
        };
        if !is_over && now.clock < asks_at && hears && attempt.votes().in_line() == nodes {
            let (lock, ttl) = (Arc::clone(lock), acquisition.request.timing.key_ttl());
            let at = beat_after(now.clock, beat).min(asks_at);
            acquisition.phase = AcquisitionPhase::InLine {
                round,
                timer: cx.timers.set(at, Timer::Retry(id)),
                asks_at,
            };
            self.acquisitions.insert(id, acquisition);
            // A transaction does not tell a key that is free from another owner's.
            let verb = Verb::Extend {
                ttl,
                write_back: Some(1),
            };
            let kind = RoundKind::Recheck {
                acquisition: id,
                attempt: round,
            };
            let round = cx.start_round(kind, cx.config.node_timeout, now);
            return cx.send_all(round, &Request::Lock { verb, lock });
        }
        let Some(AttemptVerdict::Failed(failure)) = attempt.on_split(now.clock) else {
            return;
        };
        if is_over {
            return give_up(id, &acquisition, (round, failure), cx, now);
        }
        self.ask_again(id, acquisition, (round, &failure), leases, cx, now);
    }

    /// Asks nodes again for an acquisition that stands in line, with a fresh owner at the same place.
    ///
    /// The next attempt is sent before the release of this one, so that the place is kept, and what this one was given goes
    /// to the next unless a caller waits that came earlier.
    fn ask_again(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        (round, failure): (u64, &Failure),
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let request = acquisition.request.clone();
        let Some((lock, _)) = decided(round, cx) else {
            return;
        };
        self.attempt(id, acquisition, leases, cx, now);
        attempt::give_back(failure, &request, &lock, cx, now);
        cx.forget_if_over(round);
    }

    /// Takes in that a node has given a key to a caller that waited in line.
    pub(in super::super) fn on_gift(
        &mut self,
        node: usize,
        gift: Gift,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let is_known = cx.nodes.run(node) == Some(&gift.run);
        if !is_known || cx.nodes.vote(node, now.clock).is_err() {
            return;
        }
        let Some(entry) = cx.rounds.get_mut(gift.round) else {
            return;
        };
        if gift.counter == 0 {
            if let RoundKind::Attempt { acquisition, .. } = entry.kind {
                self.ask_by(acquisition, now.clock + ALL_TOLD, cx);
            }
            return;
        }
        if let Some((lock, tokens)) = &entry.counts {
            let counter = gift.counter;
            cx.tokens
                .note(&lock.keys, *tokens, &Reply::Taken { counter });
        }
        let reading = ClockReading {
            time: gift.time,
            sent: entry.started,
            received: now.clock,
        };
        let outcome = NodeOutcome::Granted {
            counter: gift.counter,
        };
        let RoundKind::Attempt {
            attempt,
            acquisition: id,
            ..
        } = &mut entry.kind
        else {
            if let RoundKind::Give { lease } = &entry.kind
                && let Some(held) = leases.get_mut(*lease)
            {
                held.state.on_late_outcome(node, outcome);
            }
            let result = (node, outcome, None);
            return self.on_outcome(gift.round, result, leases, cx, now);
        };
        let id = *id;
        let verdict = attempt.on_gift(node, gift.counter, (gift.run, reading), now.clock);
        let is_counted = matches!(
            attempt.votes().get(node),
            Some(crate::Vote::Cast(NodeOutcome::Granted { .. }))
        );
        // A node whose line came back with old data gives a key where it has refused.
        if is_counted {
            entry.say(node, NodeAnswer::Granted);
        }
        match verdict {
            None => self.stand(gift.round, leases, cx, now),
            // It asked too long ago: the rest is too short for a lease. A majority has its key now.
            Some(AttemptVerdict::Failed(failure)) if failure.kind == FailureKind::Expired => {
                self.stands_no_more(id, cx);
                if let Some(acquisition) = self.acquisitions.remove(id) {
                    if now.clock >= acquisition.request.wait_until {
                        return give_up(id, &acquisition, (gift.round, failure), cx, now);
                    }
                    let over = (gift.round, &failure);
                    self.ask_again(id, acquisition, over, leases, cx, now);
                }
            }
            // Or the clock of a node that voted disagrees, and what is left is no majority.
            Some(verdict) => {
                self.attempted(gift.round, verdict, leases, cx, now);
                cx.forget_if_over(gift.round);
            }
        }
    }

    /// Has a caller in line ask again at once if a node says that the key is free, or has been given to it: no message of
    /// that was heard.
    pub(in super::super) fn on_recheck(
        &mut self,
        (id, attempt): (u64, u64),
        reply: Option<&Reply>,
        cx: &mut Context,
        now: Now,
    ) {
        let acquisition = self.acquisitions.get_mut(id);
        let phase = acquisition.map(|acquisition| &acquisition.phase);
        if let Some(AcquisitionPhase::InLine { round, .. }) = phase
            && *round == attempt
            && let Some(Reply::Missing | Reply::Done) = reply
        {
            self.ask_by(id, now.clock, cx);
        }
    }

    /// Has each caller in line ask again soon whose request was sent before: nodes may have forgotten it, or not have been
    /// heard.
    pub(in super::super) fn ask_soon(&mut self, before: Instant, cx: &mut Context, now: Now) {
        let mut at = now.clock + ALL_TOLD;
        let standing = self.acquisitions.iter().filter_map(|(id, acquisition)| {
            let AcquisitionPhase::InLine { round, .. } = acquisition.phase else {
                return None;
            };
            let sent = cx.rounds.get(round)?.started;
            (sent < before).then_some(id)
        });
        for id in standing.collect::<Vec<_>>() {
            self.ask_by(id, at, cx);
            at = at + BETWEEN_BEATS;
        }
    }

    /// Has a caller in line ask again at this moment at the latest.
    fn ask_by(&mut self, id: u64, at: Instant, cx: &mut Context) {
        if let Some(acquisition) = self.acquisitions.get_mut(id)
            && let AcquisitionPhase::InLine { timer, asks_at, .. } = &mut acquisition.phase
        {
            *asks_at = at.min(*asks_at);
            if at < timer.at() {
                cx.timers.cancel(*timer);
                *timer = cx.timers.set(at, Timer::Retry(id));
            }
        }
    }

    /// Returns the least time between two questions of a caller: many callers must not keep nodes from all else.
    fn in_turn(&self) -> Duration {
        BETWEEN_BEATS * u32::try_from(self.acquisitions.len()).unwrap_or(u32::MAX)
    }

    /// Returns the time between two rechecks, of which there is one at least before an entry ends.
    fn beat_of_recheck(&self, cx: &Context) -> Duration {
        let longest = longest_stay(cx.config.keyspace.quarantine()) * 3 / 8;
        BEAT_OF_FIRST.min(longest).max(self.in_turn())
    }

    /// Gives another sign of life if a caller is in line still.
    pub(in super::super) fn sign(&self, cx: &mut Context, now: Now) {
        let mut waiting = self.acquisitions.iter();
        cx.listening.gives_signs =
            !cx.is_closing() && waiting.any(|(_, acquisition)| acquisition.came.is_some());
        if cx.listening.gives_signs {
            cx.sign(now);
        }
    }

    /// Ends the time for which an acquisition stands in line, because its attempt is decided.
    pub(super) fn stands_no_more(&mut self, id: u64, cx: &mut Context) {
        if let Some(acquisition) = self.acquisitions.get_mut(id)
            && let AcquisitionPhase::InLine { round, timer, .. } = acquisition.phase
        {
            cx.timers.cancel(timer);
            acquisition.phase = AcquisitionPhase::Attempting { round };
        }
    }
}

impl Acquisition {
    /// Returns the entry of the next attempt, in this round, in the line for its key, if it may wait there.
    pub(super) fn in_line(&mut self, cx: &mut Context, now: Now) -> Option<InLine> {
        let request = &self.request;
        let is_plain = request.mode == LockMode::Exclusive
            && !request.keys.is_several()
            && request.keys.slots().is_none();
        let waits = self.claim.is_none() && request.wait_until > now.clock;
        if !is_plain || !waits {
            return None;
        }
        let waited = now.clock.saturating_since(request.came);
        if self.came.is_none() {
            let time = cx.nodes.common_time(now.clock);
            self.came = time.map(|time| time.before(waited));
        }
        let is_strict = request.fairness == Fairness::Strict;
        if is_strict || self.attempts > 0 {
            cx.listen(now);
        }
        let came = self.came?;
        let signs = cx.hears();
        let longest = longest_stay(cx.config.keyspace.quarantine());
        let stay = if signs {
            cx.give_signs(now);
            let left = request.wait_until.saturating_since(now.clock);
            left.max(SHORTEST_BEAT).min(longest)
        } else if waited >= PATIENCE {
            LONGEST_WITHOUT_SIGNS.min(longest)
        } else {
            Duration::ZERO
        };
        Some(InLine {
            place: LinePlace {
                came,
                client: cx.number(),
            },
            round: cx.rounds.next(),
            grant: request.timing.grant() + request.timing.lock_delay(),
            stay,
            at_once: !stay.is_zero() && (is_strict || self.attempts > 0),
            signs,
        })
    }
}

impl Acquisition {
    /// Keeps its place in the line of each of its keys, if it cannot wait there because it wants several or shares them.
    ///
    /// While its places are the first, nodes give the keys to no caller in line, and it may find them free.
    pub(super) fn keep_places(&mut self, cx: &mut Context, now: Now) {
        let waited = now.clock.saturating_since(self.request.came);
        let (is_several, is_shared) = (
            self.request.keys.is_several(),
            self.request.mode == LockMode::Shared,
        );
        let waits_outside = is_shared && !is_several || is_several && self.is_in_a_hurry(now);
        let is_plain = self.claim.is_none() && self.request.keys.slots().is_none();
        if !waits_outside || !is_plain || waited < PATIENCE {
            return;
        }
        let Some(time) = cx.nodes.common_time(now.clock) else {
            return;
        };
        let place = LinePlace {
            came: *self.came.get_or_insert_with(|| time.before(waited)),
            client: cx.number(),
        };
        let label = self.request.label;
        let owner = *self
            .keeper
            .get_or_insert_with(|| cx.owner().labelled(label));
        let quarantine = cx.config.keyspace.quarantine();
        // Several keys are kept only while it asks often.
        let stay = LONGEST_KEPT / (1 + u32::from(is_several));
        let stay = stay.min(longest_stay(quarantine));
        for lock in self.locks_of(owner) {
            let kind = RoundKind::decided(None);
            let round = cx.start_round(kind, cx.config.node_timeout, now);
            let line = Some(InLine {
                place,
                round,
                grant: Duration::ZERO,
                stay,
                at_once: true,
                signs: false,
            });
            let verb = Verb::Acquire {
                ttl: self.request.timing.key_ttl(),
                proposal: 1,
                block: 1,
                wish: None,
                line,
            };
            cx.send_all(round, &Request::Lock { verb, lock });
        }
    }

    /// Gives up the places that it has kept.
    pub(super) fn leave_lines(&mut self, cx: &mut Context, now: Now) {
        let Some(owner) = self.keeper.take() else {
            return;
        };
        let everywhere = cx.nodes.all().map(|node| GiveBack {
            node,
            tombstone: false,
        });
        for lock in self.locks_of(owner) {
            send_release(
                everywhere.clone(),
                &lock,
                self.request.timing,
                None,
                cx,
                now,
            );
        }
    }

    /// Returns each of its keys alone, for this owner.
    fn locks_of(&self, owner: OwnerId) -> impl Iterator<Item = Arc<Lock>> + use<> {
        let keys: Vec<NodeKey> = self
            .request
            .keys
            .iter()
            .map(|key| key.key().clone())
            .collect();
        keys.into_iter().map(move |key| {
            Arc::new(Lock {
                mode: LockMode::Exclusive,
                keys: KeySet::from(key),
                owner,
            })
        })
    }
}

impl Failure {
    /// Makes the failure of an attempt that shares the nodes with another, up to when a majority of them is free.
    fn split(majority_free_at: Option<Instant>) -> Self {
        Self {
            majority_free_at,
            ..Self::after_grant(FailureKind::Contended, Instant::ORIGIN, Instant::ORIGIN)
        }
    }
}

/// Ends an acquisition whose wait is over, in the round of its last attempt.
fn give_up(
    id: u64,
    acquisition: &Acquisition,
    (round, failure): (u64, Failure),
    cx: &mut Context,
    now: Now,
) {
    let taken = decided(round, cx);
    if let Some((_, attempt)) = &taken
        && let Some(entry) = cx.rounds.get_mut(round)
    {
        let nodes = &cx.nodes;
        entry.say_uncounted(attempt.votes(), |node| nodes.same_server(node));
    }
    let answers = cx.answers(round, now);
    if let Some((lock, _)) = taken {
        attempt::give_back(&failure, &acquisition.request, &lock, cx, now);
    }
    cx.forget_if_over(round);
    not_acquired(id, Some(failure), answers, cx);
}

/// Takes the attempt and its lock out of a round that is over for it.
fn decided(round: u64, cx: &mut Context) -> Option<(Arc<Lock>, Attempt)> {
    let entry = cx.rounds.get_mut(round)?;
    let decided = RoundKind::decided(None);
    match std::mem::replace(&mut entry.kind, decided) {
        RoundKind::Attempt { lock, attempt, .. } => Some((lock, attempt)),
        _ => None,
    }
}

/// Returns the moment after `beat`: if that is long, the next one on the grid on which the callers of a client ask together.
fn beat_after(from: Instant, beat: Duration) -> Instant {
    let at = from + beat;
    if beat < YOUNG {
        return at;
    }
    let over = at.since_origin().as_nanos() % GRID.as_nanos();
    let over = Duration::from_nanos(u64::try_from(over).unwrap_or(0));
    at + (GRID - over)
}

/// Returns for how long nodes keep the entry of a caller that does not ask again.
///
/// A node that comes back with old data votes after its quarantine, and has no entry of then any more.
fn longest_stay(quarantine: &Quarantine) -> Duration {
    if quarantine.length().is_zero() {
        LONGEST_STAY
    } else {
        LONGEST_STAY.min(quarantine.length())
    }
}

/// For how long a caller tries again at random that does not hear of its turn, before it waits in line.
///
/// Others wait until it asks again when it is its turn.
const PATIENCE: Duration = Duration::from_millis(250);
/// For how long nodes keep a place for a caller that cannot wait there, unless it asks again.
const LONGEST_KEPT: Duration = Duration::from_millis(600);
/// The same for a caller whose client gives signs of life, and for one whose client hears too few nodes to do so.
const LONGEST_STAY: Duration = Duration::from_secs(60);
const LONGEST_WITHOUT_SIGNS: Duration = NodeVerb::SIGN;
/// The times after which the first caller in line asks again, should a message be lost, or the key go without a release:
/// half of its wait, within these; once it has waited for long, it only rechecks that another owner has the key.
const SHORTEST_BEAT: Duration = Duration::from_millis(250);
const BEAT_OF_FIRST: Duration = Duration::from_secs(3);
/// After how long any caller asks again, should a node have lost its line unnoticed.
const LONGEST_BEAT: Duration = Duration::from_secs(30);
/// How long after one caller in line the next one asks when the holder's lease ends.
const AFTER_ANOTHER: Duration = Duration::from_secs(1);
/// How long before the end of its wait a caller asks for the last time.
const LAST_ASK: Duration = Duration::from_millis(500);
/// How soon a caller asks that was told to: all nodes may have told it by then.
const ALL_TOLD: Duration = Duration::from_millis(100);
const YOUNG: Duration = Duration::from_micros(InLine::YOUNG_MICROS);
/// Callers that have waited for long ask at whole multiples of this, so that those of one client share calls to the nodes.
const GRID: Duration = Duration::from_millis(500);
/// The time between two callers of a client that ask again, if more than 250 wait: each asks and gives its last owner back.
///
/// Where the client does not hear of turns, each asks once a second at least, because its entry would end.
const BETWEEN_BEATS: Duration = Duration::from_millis(1);
/// Nodes count in whole milliseconds.
const A_LITTLE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    // Shows: R9.3.
    #[test]
    fn no_entry_outlives_a_quarantine() {
        let quarantine = |ms| Quarantine::new(Duration::from_millis(ms), 0.01);
        assert_eq!(longest_stay(&quarantine(90_000)), Duration::from_secs(60));
        for short in [100, 500, 30_000].map(quarantine) {
            assert_eq!(longest_stay(&short), short.length());
        }
        let none = quarantine(500).best_effort();
        assert_eq!(longest_stay(&none), Duration::from_secs(60));
    }
}
