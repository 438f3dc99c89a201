//! What a client does with the answers of an inquiry.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use redlock_proto::{
    Confirms, Hearing, InformantId, Judgement, Pair as NamedPair, Roll, Statement,
};

use super::{
    NamedCheck, NamedMutation, NamedRules,
    state::{Answers, INFORMANTS, Ids, MarkKind, Pair, Session, State},
    step::Outcome,
};

/// The decisions of clients, each of which is made once.
#[derive(Debug)]
pub(super) struct Inquiries {
    check: NamedCheck,
    candidates: Known<Option<Pair>>,
    judged: Known<Option<Outcome>>,
    confirmed: Known<Confirmed>,
}

/// Decisions by the number of what they rest on.
type Known<T> = RefCell<HashMap<u64, T, BuildHasherDefault<Multiply>>>;

impl Inquiries {
    pub(super) fn new(check: NamedCheck) -> Self {
        Self {
            check,
            candidates: Known::default(),
            judged: Known::default(),
            confirmed: Known::default(),
        }
    }

    /// Returns what a client may do with these answers, if it does anything.
    ///
    /// They are steady if all are of one moment.
    pub(super) fn outcomes(
        &self,
        state: &State,
        by: usize,
        answers: Answers,
        is_steady: bool,
    ) -> Outcomes {
        let session = state.clients[by].session;
        if self.check.rules == NamedRules::Server {
            return [self.by_servers(state, session, answers), None];
        }
        match session {
            None => {
                let is_steady = is_steady || self.check.breaks(NamedMutation::BeginsUnsteady);
                [self.judge(state, answers, is_steady), None]
            }
            Some(session) => {
                let [outcome, extends] = self.watch(state, session, answers);
                let (old, young) = (NamedMutation::JoinsUnsteady, NamedMutation::YoungJoins);
                let may_extend = is_steady || self.check.breaks(old) || self.check.breaks(young);
                [outcome, extends.filter(|_| may_extend)]
            }
        }
    }

    /// Returns what a client may do that has a session.
    fn watch(&self, state: &State, session: Session, answers: Answers) -> Outcomes {
        let Session { pair, roll, .. } = session;
        let mark = state.servers[usize::from(pair.server)].mark;
        let stored = (mark.kind != MarkKind::None && mark.epoch == pair.epoch)
            .then(|| self.masked(mark.roll));
        let mut roll = self.masked(roll);
        let mut confirmed = self.confirm(state, pair, roll, answers);
        let mut outcome = Outcome::Confirms { roll };
        if confirmed.confirms == Confirms::Unknown && confirmed.is_supported {
            // Another client may have changed the roll.
            let Some(stored) = stored.filter(|stored| *stored != roll) else {
                return [None, None];
            };
            roll = stored;
            confirmed = self.confirm(state, pair, roll, answers);
            outcome = Outcome::Confirms { roll };
            if confirmed.confirms == Confirms::Unknown {
                outcome = Outcome::Adopts { roll };
            }
        }
        match confirmed.confirms {
            Confirms::Same => {
                let extended = stored.and_then(|stored| {
                    let confirmed = self.confirm(state, pair, stored, answers);
                    confirmed.extended.map(|roll| Outcome::Extends { roll })
                });
                // The mark may have changed in the meantime.
                [Some(outcome), extended]
            }
            Confirms::Another => [Some(Outcome::Closes), None],
            Confirms::Unknown if confirmed.is_supported => {
                let joins = stored.and(confirmed.extended);
                let joins = joins.map(|roll| Outcome::Extends { roll });
                let adopts = matches!(outcome, Outcome::Adopts { .. });
                [adopts.then_some(outcome), joins]
            }
            Confirms::Unknown | Confirms::Moving => [None, None],
        }
    }

    /// Returns what a client without a session does.
    fn judge(&self, state: &State, answers: Answers, is_steady: bool) -> Option<Outcome> {
        let views = self.views(state);
        let number = number(answers, views);
        let pair = known(&self.candidates, number, || {
            self.hearing(answers, views).candidate().map(pair_of)
        })?;
        let mark = state.servers[usize::from(pair.server)].mark;
        let stored = (mark.kind != MarkKind::None).then(|| self.masked(mark.roll));
        let number = number << 11 | stored.map_or(0, |roll| 1 << 10 | ids_number(roll));
        known(&self.judged, number << 1 | u64::from(is_steady), || {
            let mut hearing = self.hearing(answers, views);
            if is_steady {
                hearing = hearing.steady(&hearing);
            }
            self.judged(&hearing, (answers, views), pair, stored)
        })
    }

    fn judged(
        &self,
        hearing: &Hearing<u8>,
        (answers, views): (Answers, Views),
        pair: Pair,
        stored: Option<Ids>,
    ) -> Option<Outcome> {
        let roll = stored.map(|roll| self.roll(roll, answers, views));
        match hearing.judge(&named(pair), roll.as_ref()) {
            Judgement::Counts(_) => stored.map(|roll| Outcome::Counts { pair, roll }),
            Judgement::Lists(roll) => Some(Outcome::Lists {
                pair,
                roll: ids_of(&roll),
            }),
            Judgement::Relists(roll) => Some(Outcome::Relists {
                pair,
                roll: ids_of(&roll),
            }),
            Judgement::AsksAgain => None,
            Judgement::Refused(_) => self.judged_wrongly(answers, pair, stored),
        }
    }

    /// Returns what a client does that breaks a rule where it must do nothing.
    fn judged_wrongly(&self, answers: Answers, pair: Pair, stored: Option<Ids>) -> Option<Outcome> {
        let heard = answers.heard();
        let pairs = || answers.named.into_iter().filter_map(Pair::of);
        let support = pairs().filter(|named| *named == pair).count();
        if support <= self.check.world.informants / 2 {
            return None;
        }
        let are_all = heard.count_ones() as usize == self.check.world.informants;
        let is_greatest = pairs().all(|named| named == pair || named.epoch < pair.epoch);
        let roll = all(answers);
        let mutations = match (are_all, is_greatest) {
            (false, true) => (NamedMutation::ListsUnheard, NamedMutation::RelistsUnheard),
            (true, false) => (
                NamedMutation::ListsUnderSmaller,
                NamedMutation::RelistsUnderSmaller,
            ),
            _ => return None,
        };
        match stored {
            None if self.check.breaks(mutations.0) => Some(Outcome::Lists { pair, roll }),
            Some(_) if self.check.breaks(mutations.1) => Some(Outcome::Relists { pair, roll }),
            _ => None,
        }
    }

    /// Returns what the answers say of a pair, by a roll.
    fn confirm(&self, state: &State, pair: Pair, roll: Ids, answers: Answers) -> Confirmed {
        let views = self.views(state);
        let number = number(answers, views) << 14 | ids_number(roll) << 4 | u64::from(pair.code());
        known(&self.confirmed, number, || {
            self.confirmed(answers, views, pair, roll)
        })
    }

    fn confirmed(&self, mut answers: Answers, views: Views, pair: Pair, listed: Ids) -> Confirmed {
        if self.check.breaks(NamedMutation::ServerConfirms) {
            for code in &mut answers.named {
                if Pair::of(*code).is_some_and(|named| named.server == pair.server) {
                    *code = pair.code();
                }
            }
        }
        let hearing = self.hearing(answers, views);
        let roll = self.roll(listed, answers, views);
        let pair = named(pair);
        let confirms = hearing.confirms(&pair, &roll);
        let is_supported = hearing.support(&pair) >= roll.majority();
        let mut earlier = answers;
        if !self.check.breaks(NamedMutation::YoungJoins) {
            // Their ids did not answer the inquiry before.
            for (place, code) in earlier.named.iter_mut().enumerate() {
                *code *= u8::from(answers.young >> place & 1 == 0);
            }
        }
        let earlier = self.hearing(earlier, views);
        let extended = if is_supported && self.check.breaks(NamedMutation::JoinsUnconfirmed) {
            let joined = roll.ids().iter().copied().chain(earlier.ids());
            Some(Roll::new(roll.count(), joined))
        } else {
            hearing.steady(&earlier).extended(&pair, &roll)
        };
        let extended = extended.filter(|extended| *extended != roll);
        Confirmed {
            confirms,
            is_supported,
            extended: extended.map(|roll| ids_of(&roll)),
        }
    }

    /// Returns what a client does by rules that know no terms.
    fn by_servers(
        &self,
        state: &State,
        session: Option<Session>,
        answers: Answers,
    ) -> Option<Outcome> {
        let named = self.check.url(0).count_ones() as usize;
        let needed = self.known(state, answers).max(named) / 2 + 1;
        let pairs = answers.named.into_iter().filter_map(Pair::of);
        let mut servers = [0; 2];
        pairs.for_each(|pair| servers[usize::from(pair.server)] += 1);
        let server = (0..2).find(|server| servers[usize::from(*server)] >= needed)?;
        let is_closed = session.is_some_and(|session| session.pair.server != server);
        Some(if is_closed {
            Outcome::Closes
        } else {
            Outcome::Follows { server }
        })
    }

    /// Returns the greatest number of informants of which one knows that has answered.
    fn known(&self, state: &State, answers: Answers) -> usize {
        let views = self.views(state);
        let heard = answers.heard();
        let known = (0..INFORMANTS).filter(|place| heard >> place & 1 == 1);
        known.map(|place| views.of(place)).max().unwrap_or(0)
    }

    fn views(&self, state: &State) -> Views {
        let mut views = Views {
            all: self.check.world.informants,
            reset: 0,
        };
        for (place, informant) in state.informants.iter().enumerate() {
            views.reset |= u8::from(informant.was_reset) << place;
        }
        views
    }

    /// Returns the answers as the protocol hears them.
    fn hearing(&self, mut answers: Answers, views: Views) -> Hearing<u8> {
        let bends = |by| self.check.breaks(by);
        let (greatest, least) = (NamedMutation::GreatestEpoch, NamedMutation::LeastEpoch);
        if bends(greatest) || bends(least) {
            let pairs: Vec<Pair> = answers.named.into_iter().filter_map(Pair::of).collect();
            for code in &mut answers.named {
                let Some(Pair { server, .. }) = Pair::of(*code) else {
                    continue;
                };
                let epochs = pairs
                    .iter()
                    .filter(|it| it.server == server)
                    .map(|it| it.epoch);
                let epoch = if bends(greatest) {
                    epochs.max()
                } else {
                    epochs.min()
                };
                *code = epoch.map_or(0, |epoch| Pair { server, epoch }.code());
            }
        }
        let mut hearing = Hearing::of_all(self.count(answers, views));
        for (place, code) in answers.named.into_iter().enumerate() {
            if let Some(pair) = Pair::of(code) {
                let known = views.of(place);
                hearing.hear(Statement {
                    by: id(place, answers.former >> place & 1 == 1),
                    names: Some(named(pair)),
                    known,
                    running: known,
                    is_moving: None,
                });
            }
        }
        hearing
    }

    /// Returns how many informants there are, of which a majority is needed.
    fn count(&self, answers: Answers, views: Views) -> usize {
        if self.check.breaks(NamedMutation::NumberShrinks) {
            let heard = answers.heard();
            let known = (0..INFORMANTS).filter(|place| heard >> place & 1 == 1);
            return known.map(|place| views.of(place)).max().unwrap_or(1);
        }
        self.check.world.informants
    }

    fn roll(&self, mut listed: Ids, answers: Answers, views: Views) -> Roll {
        if self.check.breaks(NamedMutation::AnyIdCounts) {
            listed = all(answers);
        }
        Roll::new(self.count(answers, views), ids(listed))
    }

    /// Returns a set of ids without those of informants that this world does not have.
    fn masked(&self, ids: Ids) -> Ids {
        let mask = (1 << self.check.world.informants) - 1;
        Ids {
            present: ids.present & mask,
            former: ids.former & mask,
        }
    }
}

/// What a client may do with the answers of an inquiry.
pub(super) type Outcomes = [Option<Outcome>; 2];

/// What the answers of an inquiry say of a pair, by a roll.
#[derive(Clone, Copy, Debug)]
struct Confirmed {
    confirms: Confirms,
    /// Whether a majority names the pair, listed or not.
    is_supported: bool,
    /// The roll with the informants that join it.
    extended: Option<Ids>,
}

/// How many informants each of them knows.
#[derive(Clone, Copy)]
struct Views {
    all: usize,
    /// Those that were made to forget the others, as bits.
    reset: u8,
}

impl Views {
    fn of(self, place: usize) -> usize {
        if self.reset >> place & 1 == 1 {
            self.reset.count_ones() as usize
        } else {
            self.all
        }
    }
}

/// Returns a decision that was made before, or makes it.
fn known<T: Copy>(known: &Known<T>, number: u64, decide: impl FnOnce() -> T) -> T {
    if let Some(decision) = known.borrow().get(&number) {
        return *decision;
    }
    let decision = decide();
    known.borrow_mut().insert(number, decision);
    decision
}

/// Returns a number that no other answers have, in 36 bits.
fn number(answers: Answers, views: Views) -> u64 {
    let named = answers.named.into_iter();
    let number = named.fold(0, |number, code| number << 4 | u64::from(code));
    [answers.former, answers.young, views.reset]
        .into_iter()
        .fold(number, |number, set| number << 5 | u64::from(set))
}

const fn ids_number(ids: Ids) -> u64 {
    (ids.present as u64) << 5 | ids.former as u64
}

const fn named(pair: Pair) -> NamedPair<u8> {
    NamedPair {
        server: pair.server,
        epoch: pair.epoch as u64,
    }
}

fn pair_of(pair: NamedPair<u8>) -> Pair {
    Pair {
        server: pair.server,
        epoch: u8::try_from(pair.epoch).unwrap_or(u8::MAX),
    }
}

/// Returns all ids that have answered.
fn all(answers: Answers) -> Ids {
    let heard = answers.heard();
    Ids {
        present: heard & !answers.former,
        former: heard & answers.former,
    }
}

fn id(place: usize, is_former: bool) -> InformantId {
    let number = if is_former { INFORMANTS + place } else { place };
    InformantId::new(number as u64)
}

fn ids(ids: Ids) -> impl Iterator<Item = InformantId> {
    let present = (0..INFORMANTS).filter(move |place| ids.present >> place & 1 == 1);
    let former = (0..INFORMANTS).filter(move |place| ids.former >> place & 1 == 1);
    let present = present.map(|place| id(place, false));
    present.chain(former.map(|place| id(place, true)))
}

fn ids_of(roll: &Roll) -> Ids {
    let set = |is_former| {
        let places = (0..INFORMANTS).filter(|place| roll.has(id(*place, is_former)));
        places.fold(0, |set, place| set | 1 << place)
    };
    Ids {
        present: set(false),
        former: set(true),
    }
}

/// A hash that is good enough for small numbers, and fast.
#[derive(Debug, Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let hash = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = hash ^ hash >> 32;
    }
}
