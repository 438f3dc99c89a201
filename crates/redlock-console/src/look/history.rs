//! What earlier looks have found, as far as it is bounded: the margin of votes, round trips, lives of keys, terms.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use redlock_proto::LinePlace;

use super::{
    clock::{millis, rounded},
    keys::HeldKey,
    lookup::{Owner, line},
};
use crate::snapshot::{KeyEvent, KeyEventKind, MarginStep, RoundTrips, TermSnapshot};

/// A short memory of looks.
#[derive(Debug, Default)]
pub(super) struct History {
    margin: VecDeque<MarginStep>,
    looked: Option<Duration>,
    /// By node, in the order of the configuration.
    round_trips: Vec<NodeTimes>,
    /// By key, for those whose page was asked for of late.
    lives: HashMap<String, Life>,
    /// By election, the newest first.
    terms: HashMap<String, VecDeque<TermSnapshot>>,
}

/// The times that a node took to answer.
#[derive(Debug, Default)]
struct NodeTimes {
    last: VecDeque<f64>,
    /// The longest of each minute, with the minute since 1970.
    by_minute: VecDeque<(u64, Option<f64>)>,
}

/// The life of a key, from the moment on at which its page was asked for.
#[derive(Debug)]
struct Life {
    asked: Duration,
    last: Option<Seen>,
    events: VecDeque<KeyEvent>,
}

/// A key at one look.
#[derive(Debug)]
struct Seen {
    at: Duration,
    /// `None` if no node has it.
    owner: Option<Owner>,
    left: Option<Duration>,
    is_held: bool,
    line: Vec<(LinePlace, String)>,
}

impl History {
    /// Notes how many nodes vote, and returns the last hour.
    pub(super) fn margin(&mut self, votes: usize, at: Duration) -> Vec<MarginStep> {
        let step = |at, votes| MarginStep {
            at_ms: whole_ms(at),
            votes,
        };
        if let Some(looked) = self.looked.replace(at)
            && at.saturating_sub(looked) > UNSEEN
        {
            self.margin.push_back(step(looked, None));
        }
        if self
            .margin
            .back()
            .is_none_or(|last| last.votes != Some(votes))
        {
            self.margin.push_back(step(at, Some(votes)));
        }
        let hour_ago = whole_ms(at.saturating_sub(HOUR));
        // The step that went on an hour ago stays.
        while self.margin.len() > MOST_STEPS
            || self.margin.get(1).is_some_and(|next| next.at_ms < hour_ago)
        {
            self.margin.pop_front();
        }
        self.margin.iter().copied().collect()
    }

    /// Notes how long a node took to answer, and returns the last hour.
    pub(super) fn round_trips(
        &mut self,
        node: usize,
        took_ms: Option<f64>,
        at: Duration,
    ) -> RoundTrips {
        if self.round_trips.len() <= node {
            self.round_trips.resize_with(node + 1, NodeTimes::default);
        }
        let NodeTimes { last, by_minute } = &mut self.round_trips[node];
        if let Some(took) = took_ms {
            last.push_back(took);
        }
        if last.len() > MOST_TIMES {
            last.pop_front();
        }
        let minute = at.as_secs() / 60;
        match by_minute.back_mut().filter(|(its, _)| *its == minute) {
            Some((_, longest)) => {
                *longest = longest.iter().chain(&took_ms).copied().reduce(f64::max);
            }
            None => by_minute.push_back((minute, took_ms)),
        }
        while by_minute.len() > 60
            || by_minute
                .front()
                .is_some_and(|(first, _)| first + 60 <= minute)
        {
            by_minute.pop_front();
        }
        let mut times: Vec<f64> = last.iter().copied().collect();
        times.sort_by(f64::total_cmp);
        let percentile = |percent: usize| {
            let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(at).copied()
        };
        RoundTrips {
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            by_minute_ms: by_minute.iter().map(|(_, longest)| *longest).collect(),
        }
    }

    /// Notes what has become of the keys whose pages were asked for.
    pub(super) fn keys(&mut self, held: &[HeldKey], majority: usize, at: Duration) {
        if self.lives.is_empty() {
            return;
        }
        self.lives
            .retain(|_, life| at.saturating_sub(life.asked) < WATCHED);
        let mut keys: HashMap<&str, &HeldKey> = HashMap::new();
        for key in held {
            if self.lives.contains_key(&*key.key) {
                keys.insert(&key.key, key);
            }
        }
        for (name, life) in &mut self.lives {
            life.note(keys.get(&**name).copied(), majority, at);
        }
    }

    /// Begins to note what becomes of a key, or goes on, and returns what was noted, the newest first.
    pub(super) fn timeline(
        &mut self,
        name: &str,
        held: Option<&HeldKey>,
        majority: usize,
        at: Duration,
    ) -> Vec<KeyEvent> {
        if !self.lives.contains_key(name) && self.lives.len() >= MOST_LIVES {
            let oldest = self.lives.iter().min_by_key(|(_, life)| life.asked);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.lives.remove(&oldest);
            }
        }
        let life = self.lives.entry(name.to_owned()).or_insert_with(|| Life {
            asked: at,
            last: None,
            events: VecDeque::new(),
        });
        life.asked = at;
        life.note(held, majority, at);
        life.events.iter().rev().cloned().collect()
    }

    /// Notes the leader of an election, and returns the terms of the last day, the newest first.
    pub(super) fn terms(
        &mut self,
        election: &str,
        is_known: bool,
        term: Option<(Option<String>, Option<f64>)>,
        at: Duration,
    ) -> Vec<TermSnapshot> {
        let terms = self.terms.entry(election.to_owned()).or_default();
        let at_ms = millis(at);
        let newest = terms.front_mut().filter(|newest| newest.until_ms.is_none());
        let is_same = match (&newest, &term) {
            (Some(newest), Some((leader, since))) => {
                newest.leader == *leader
                    && since.is_none_or(|since| (since - newest.since_ms).abs() < 1.0)
            }
            (None, None) => true,
            _ => false,
        };
        if is_known && !is_same {
            if let Some(newest) = newest {
                newest.until_ms = Some(at_ms);
            }
            if let Some((leader, since)) = term {
                terms.push_front(TermSnapshot {
                    leader,
                    since_ms: since.unwrap_or(at_ms),
                    until_ms: None,
                });
            }
        }
        let day_ago = millis(at.saturating_sub(24 * HOUR));
        terms.truncate(MOST_TERMS);
        terms.retain(|term| term.until_ms.is_none_or(|until| until > day_ago));
        terms.iter().cloned().collect()
    }
}

impl Life {
    /// Compares the key with what it was, and notes the difference.
    fn note(&mut self, held: Option<&HeldKey>, majority: usize, at: Duration) {
        let now = Seen {
            at,
            owner: held.map(|key| key.owner.clone()),
            left: held.and_then(|key| key.left),
            is_held: held.is_some_and(|key| key.votes >= majority),
            line: held.map_or_else(Vec::new, |key| {
                let line = key.in_line().iter();
                line.take(MOST_CALLERS)
                    .map(|caller| (caller.place, line::label(caller)))
                    .collect()
            }),
        };
        let before = self.last.take();
        if let Some((kind, words)) = change(before.as_ref(), &now) {
            let owner = now
                .owner
                .as_ref()
                .or_else(|| before.as_ref().and_then(|before| before.owner.as_ref()));
            self.push(kind, owner.and_then(Owner::shown), words, at);
        }
        if let Some(before) = &before {
            for (place, label) in &now.line {
                if !before.line.iter().any(|(other, _)| other == place) {
                    self.push(
                        KeyEventKind::Joined,
                        Some(label.clone()),
                        format!("{label} waits in line"),
                        at,
                    );
                }
            }
            for (place, label) in &before.line {
                let is_gone = !now.line.iter().any(|(other, _)| other == place);
                let has_it = now.owner.as_ref().and_then(Owner::shown).as_ref() == Some(label);
                if is_gone && !has_it {
                    self.push(
                        KeyEventKind::Left,
                        Some(label.clone()),
                        format!("{label} no longer waits"),
                        at,
                    );
                }
            }
        }
        self.last = Some(now);
    }

    fn push(&mut self, kind: KeyEventKind, holder: Option<String>, words: String, at: Duration) {
        let event = KeyEvent {
            at_ms: whole_ms(at),
            kind,
            holder,
            words,
        };
        // A lease that is extended again and again is one event, at the last time.
        let is_again = |last: &&mut KeyEvent| {
            kind == KeyEventKind::Extended && last.kind == kind && last.holder == event.holder
        };
        if let Some(last) = self.events.back_mut().filter(is_again) {
            *last = event;
            return;
        }
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// Returns what has happened to a key between two looks, in a word and in a sentence.
fn change(before: Option<&Seen>, now: &Seen) -> Option<(KeyEventKind, String)> {
    let Some(before) = before else {
        return now.owner.as_ref().map(|owner| {
            let words = format!("{} holds it as this page begins to look", owner.holder());
            (KeyEventKind::Granted, words)
        });
    };
    let passed = now.at.saturating_sub(before.at);
    match (&before.owner, &now.owner) {
        (None, None) => None,
        (None, Some(owner)) => Some((
            KeyEventKind::Granted,
            format!("{} has got it", owner.holder()),
        )),
        (Some(owner), None) => {
            let is_over = before.left.is_some_and(|left| left <= passed);
            let holder = owner.holder();
            Some(match is_over {
                true => (
                    KeyEventKind::Expired,
                    format!("the time of {holder} has ended without a renewal"),
                ),
                false => (KeyEventKind::Freed, format!("{holder} has released it")),
            })
        }
        (Some(was), Some(is)) if was == is => {
            if before.is_held && !now.is_held {
                let words = format!(
                    "{} no longer has it on a majority of the nodes",
                    is.holder()
                );
                return Some((KeyEventKind::Lost, words));
            }
            let expected = before.left?.saturating_sub(passed);
            let longer = now.left?.saturating_sub(expected);
            (longer > JITTER).then(|| {
                let words = format!("{} has extended it by {}", is.holder(), rounded(longer));
                (KeyEventKind::Extended, words)
            })
        }
        (Some(was), Some(is)) => {
            let (was, is) = (was.shown(), is.shown());
            let holder = is
                .clone()
                .unwrap_or_else(|| "a holder without a label".to_owned());
            let was_in_line = before
                .line
                .iter()
                .any(|(_, label)| Some(label) == is.as_ref());
            Some(if is.is_some() && is == was {
                (
                    KeyEventKind::HandedOver,
                    format!("{holder} has it for its next caller"),
                )
            } else if was_in_line {
                (
                    KeyEventKind::Given,
                    format!("{holder} has got it from the line"),
                )
            } else {
                (KeyEventKind::Taken, format!("{holder} has got it"))
            })
        }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const HOUR: Duration = Duration::from_secs(60 * 60);
/// From this time between two looks on, what was between them was not seen.
const UNSEEN: Duration = Duration::from_secs(10);
/// The most steps of the margin, as of a node that comes and goes.
const MOST_STEPS: usize = 120;
/// The most times of a node of which percentiles are made.
const MOST_TIMES: usize = 60;
/// How long the life of a key is noted after its page was asked for last.
const WATCHED: Duration = Duration::from_secs(600);
/// The most keys whose lives are noted.
const MOST_LIVES: usize = 50;
/// The most events of a key.
const MOST_EVENTS: usize = 100;
/// The most callers of a line that are noted.
const MOST_CALLERS: usize = 100;
/// The most terms of an election.
const MOST_TERMS: usize = 50;
/// Two looks at the time of a lease differ by this without an extension: nodes answer at different times.
const JITTER: Duration = Duration::from_millis(500);
