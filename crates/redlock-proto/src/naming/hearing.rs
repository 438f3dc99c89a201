use super::{InformantId, Roll};

/// A server, and the epoch under which it is named.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an informant must say both of it"
)]
pub struct Pair<S> {
    /// The server.
    pub server: S,
    /// The epoch.
    pub epoch: u64,
}

/// The answer of one informant.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must fill in every part of it"
)]
pub struct Statement<S> {
    /// The informant.
    pub by: InformantId,
    /// The pair that it names, if it names one.
    pub names: Option<Pair<S>>,
    /// How many informants there are, as far as this one knows, also those that are gone and were not forgotten.
    pub known: usize,
    /// How many of these run, as far as this one knows.
    pub running: usize,
    /// Whether the slot is on its way to or from this informant, if it names itself as the owner of the slot.
    pub is_moving: Option<bool>,
}

/// The answers of one inquiry.
#[derive(Clone, Debug)]
pub struct Hearing<S> {
    /// How many informants the client's configuration names; `None` if it need not name all, because they know each other.
    named: Option<usize>,
    // invariant: no informant twice
    statements: Vec<Statement<S>>,
    /// Whether all of it was so at one moment.
    is_steady: bool,
}

/// What a client does with the server of a pair, whose mark it has read.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every case")]
pub enum Judgement {
    /// It counts on the server, by the roll of its mark.
    Counts(Roll),
    /// It counts on the server, which has no mark; the quarantine that begins lists these informants.
    Lists(Roll),
    /// It deletes the mark first, if that is still the one that it has read; the rest as for [`Lists`](Self::Lists).
    Relists(Roll),
    /// It waits for another inquiry, because a roll begins only with [`steady`](Hearing::steady) answers.
    AsksAgain,
    /// It asks the server nothing.
    Refused(Shortfall),
}

/// Why a server is not counted on.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must say what to do")]
pub enum Shortfall {
    /// Fewer informants than are needed name one server under one epoch.
    NoMajority {
        /// How many are needed.
        needed: usize,
        /// How many there are.
        count: usize,
    },
    /// The server has no mark, and more informants run than the configuration names.
    NotAllNamed {
        /// How many it names.
        named: usize,
        /// How many run.
        running: usize,
    },
    /// A majority names the server, a roll must begin, and an informant is silent or names another pair that is not older.
    Unsettled {
        /// How many have answered.
        heard: usize,
        /// How many there are.
        count: usize,
        /// The greatest epoch of such a pair.
        greater: Option<u64>,
    },
    /// A majority names the server, and too few of it are on the roll of its mark.
    Unlisted {
        /// How many of them are listed.
        listed: usize,
        /// How many are needed.
        needed: usize,
        /// How many are known, which is more than the mark counts; `None` if the client has not heard all.
        known: Option<usize>,
    },
    /// The slot is on its way from one server to another.
    Moving,
    /// The owner of the slot has not answered itself, so the slot may be on its way.
    OwnerSilent,
}

/// What an inquiry says of the pair on which a client counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every case")]
pub enum Confirms {
    /// A majority names the same pair.
    Same,
    /// A majority names another pair.
    Another,
    /// The slot is on its way: what the server grants is no vote.
    Moving,
    /// Neither is known.
    Unknown,
}

impl<S: Clone + Eq> Hearing<S> {
    /// Begins an inquiry of the informants that a configuration names, which are all that there are.
    pub const fn of_all(named: usize) -> Self {
        Self {
            named: Some(named),
            statements: Vec::new(),
            is_steady: false,
        }
    }

    /// Begins an inquiry of informants that know each other, each of which can be the server that is named.
    pub const fn of_members() -> Self {
        Self {
            named: None,
            statements: Vec::new(),
            is_steady: false,
        }
    }

    /// Takes in an answer; two answers of one informant count once.
    pub fn hear(&mut self, statement: Statement<S>) {
        self.is_steady = false;
        if !self.ids().any(|id| id == statement.by) {
            self.statements.push(statement);
        }
    }

    /// Returns the answers that were the same in `earlier`, an inquiry that was complete before this one was begun.
    ///
    /// An informant goes back to no pair and no id, so all that they say was so at one moment between the two.
    #[must_use]
    pub fn steady(&self, earlier: &Self) -> Self {
        let is_same = |statement: &&Statement<S>| {
            let mut earlier = earlier.statements.iter();
            earlier.any(|it| it.by == statement.by && it.names == statement.names)
        };
        Self {
            named: self.named,
            statements: self.statements.iter().filter(is_same).cloned().collect(),
            is_steady: true,
        }
    }

    /// Returns the informants that have answered.
    pub fn ids(&self) -> impl Iterator<Item = InformantId> {
        self.statements.iter().map(|statement| statement.by)
    }

    /// Returns how many informants there are, for a roll that begins.
    pub fn count(&self) -> usize {
        self.named
            .unwrap_or_else(|| self.known().max(self.statements.len()))
    }

    /// Returns how many informants name a pair, listed or not.
    pub fn support(&self, pair: &Pair<S>) -> usize {
        self.supporters(pair).count()
    }

    /// Returns the pair that more informants name than any other; `None` if there are two of them.
    pub fn candidate(&self) -> Option<Pair<S>> {
        let pairs = self.statements.iter().filter_map(|it| it.names.as_ref());
        let mut ranked: Vec<(&Pair<S>, usize)> = Vec::new();
        for pair in pairs {
            match ranked.iter_mut().find(|(other, _)| *other == pair) {
                Some((_, votes)) => *votes += 1,
                None => ranked.push((pair, 1)),
            }
        }
        let most = ranked.iter().map(|(_, votes)| *votes).max()?;
        let mut first = ranked.iter().filter(|(_, votes)| *votes == most);
        match (first.next(), first.next()) {
            (Some((pair, _)), None) => Some((*pair).clone()),
            _ => None,
        }
    }

    /// Returns what a client does with the server of a pair, whose mark has the roll `stored`.
    pub fn judge(&self, pair: &Pair<S>, stored: Option<&Roll>) -> Judgement {
        if let Some(shortfall) = self.of_slot(pair) {
            return Judgement::Refused(shortfall);
        }
        let support = self.support(pair);
        let all = |count| Roll::new(count, self.ids());
        let Some(roll) = stored else {
            let count = self.count();
            let needed = count / 2 + 1;
            let running = self.greatest(|it| it.running);
            return if let Some(named) = self.named.filter(|named| running > *named) {
                // Other clients may name the others.
                Judgement::Refused(Shortfall::NotAllNamed { named, running })
            } else if support < needed {
                Judgement::Refused(Shortfall::NoMajority { needed, count })
            } else if let Some(shortfall) = self.before_a_roll(pair, count) {
                Judgement::Refused(shortfall)
            } else if self.is_steady {
                Judgement::Lists(all(count))
            } else {
                Judgement::AsksAgain
            };
        };
        let (listed, needed, count) = (self.listed(pair, roll), roll.majority(), roll.count());
        if listed >= needed {
            return Judgement::Counts(roll.clone());
        }
        if support < needed {
            return Judgement::Refused(Shortfall::NoMajority { needed, count });
        }
        let known = self.known().max(self.named.unwrap_or(0));
        let has_heard_all = self.statements.len() >= known;
        if has_heard_all && known <= count {
            return match self.before_a_roll(pair, known) {
                Some(shortfall) => Judgement::Refused(shortfall),
                None if self.is_steady => Judgement::Relists(all(count)),
                None => Judgement::AsksAgain,
            };
        }
        Judgement::Refused(Shortfall::Unlisted {
            listed,
            needed,
            known: (known > count).then_some(known),
        })
    }

    /// Returns what the answers say of the pair on which a client counts, by the roll of its session.
    pub fn confirms(&self, pair: &Pair<S>, roll: &Roll) -> Confirms {
        let listed = self.statements.iter().filter(|it| roll.has(it.by));
        let mut others = listed.filter_map(|it| it.names.as_ref().filter(|other| *other != pair));
        let is_another = others.any(|other| self.listed(other, roll) >= roll.majority());
        match self.of_slot(pair) {
            _ if is_another => Confirms::Another,
            Some(Shortfall::Moving) => Confirms::Moving,
            None if self.listed(pair, roll) >= roll.majority() => Confirms::Same,
            Some(_) | None => Confirms::Unknown,
        }
    }

    /// Returns the roll with the informants that join it, because a majority of the roll names the pair, and they do, at one
    /// moment; the answers must be [`steady`](Self::steady).
    ///
    /// Informants that joined need no quarantine.
    /// A majority that was counted before has an epoch that is not greater, because one of this majority was part of it.
    /// One that is counted later has an epoch that is not smaller.
    pub fn extended(&self, pair: &Pair<S>, roll: &Roll) -> Option<Roll> {
        let is_settled = self.is_steady && self.known() <= roll.count();
        if !is_settled || self.confirms(pair, roll) != Confirms::Same {
            return None;
        }
        let joined = self.supporters(pair).filter(|id| !roll.has(*id));
        let mut joined = joined.peekable();
        joined.peek()?;
        let is_here = |id: &InformantId| self.ids().any(|heard| heard == *id);
        let (here, away): (Vec<_>, Vec<_>) = roll.ids().iter().partition(|id| is_here(id));
        let mut ids: Vec<InformantId> = here;
        ids.extend(joined);
        // One that is away may come back with its file; of those that never do there would be ever more.
        let room = (2 * roll.count()).saturating_sub(ids.len());
        ids.extend(away.into_iter().take(room));
        Some(Roll::new(roll.count(), ids))
    }

    /// Returns why the slot has no vote, if it has none; only its owner shows that it is on its way.
    fn of_slot(&self, pair: &Pair<S>) -> Option<Shortfall> {
        let named = self.statements.iter();
        let mut own = named
            .filter(|it| it.names.as_ref() == Some(pair))
            .filter_map(|it| it.is_moving);
        match (self.named, own.next()) {
            (Some(_), _) | (None, Some(false)) => None,
            (None, Some(true)) => Some(Shortfall::Moving),
            (None, None) => Some(Shortfall::OwnerSilent),
        }
    }

    /// Returns why no roll may begin under a pair, if there are so many informants.
    ///
    /// A majority of another roll may have named a younger pair before.
    /// If all have answered and none names another pair that is not older, those of this majority have lost their files,
    /// and the rest of its roll is no majority.
    /// One that is left out, or names the younger pair, may make it a majority again with one that hears of it only later.
    fn before_a_roll(&self, pair: &Pair<S>, count: usize) -> Option<Shortfall> {
        // One that leads a failover, and names nothing meanwhile, may have named a younger pair.
        let heard = self.statements.iter().filter(|it| it.names.is_some());
        let heard = heard.count();
        let others = self.statements.iter().filter_map(|it| it.names.as_ref());
        let others = others.filter(|other| *other != pair);
        let greatest = others.map(|other| other.epoch).max();
        // The leader of a failover may name the old server under the new epoch first.
        let greater = greatest.filter(|epoch| *epoch >= pair.epoch);
        let may_begin = heard >= count && greater.is_none();
        (!may_begin).then_some(Shortfall::Unsettled {
            heard,
            count,
            greater,
        })
    }

    fn supporters(&self, pair: &Pair<S>) -> impl Iterator<Item = InformantId> {
        let named = self.statements.iter();
        let named = named.filter(move |it| it.names.as_ref() == Some(pair));
        named.map(|it| it.by)
    }

    fn listed(&self, pair: &Pair<S>, roll: &Roll) -> usize {
        self.supporters(pair).filter(|id| roll.has(*id)).count()
    }

    /// Returns the greatest number of informants of which one of them knows.
    fn known(&self) -> usize {
        self.greatest(|it| it.known)
    }

    fn greatest(&self, number: impl FnMut(&Statement<S>) -> usize) -> usize {
        self.statements.iter().map(number).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The informant `by` names `server` under `epoch`, and knows of `known` informants.
    fn says(by: u64, server: char, epoch: u64, known: usize) -> Statement<char> {
        Statement {
            by: InformantId::new(by),
            names: Some(Pair { server, epoch }),
            known,
            running: known.min(3),
            is_moving: None,
        }
    }

    fn heard(statements: &[(u64, char, u64)]) -> Hearing<char> {
        let mut hearing = Hearing::of_all(3);
        for &(by, server, epoch) in statements {
            hearing.hear(says(by, server, epoch, 3));
        }
        hearing
    }

    /// Two inquiries have the same answers.
    fn twice(hearing: &Hearing<char>) -> Hearing<char> {
        hearing.steady(hearing)
    }

    fn roll(ids: &[u64]) -> Roll {
        Roll::new(3, ids.iter().copied().map(InformantId::new))
    }

    const A0: Pair<char> = Pair {
        server: 'A',
        epoch: 0,
    };
    const B1: Pair<char> = Pair {
        server: 'B',
        epoch: 1,
    };

    // Shows: R7.1.
    #[test]
    fn a_majority_names_one_server_under_one_epoch() {
        let mixed = heard(&[(1, 'A', 2), (2, 'B', 1), (3, 'A', 0)]);
        assert_eq!(mixed.candidate(), None, "two of three name A");
        let needed = Judgement::Refused(Shortfall::NoMajority {
            needed: 2,
            count: 3,
        });
        assert_eq!(mixed.judge(&A0, None), needed);
        assert_eq!(mixed.judge(&A0, Some(&roll(&[1, 2, 3]))), needed);
        let agreed = heard(&[(1, 'B', 1), (1, 'B', 1), (2, 'B', 1), (3, 'A', 0)]);
        assert_eq!(agreed.candidate(), Some(B1));
        let all = Judgement::Lists(roll(&[1, 2, 3]));
        assert_eq!(
            twice(&agreed).judge(&B1, None),
            all,
            "all that it has heard"
        );
        assert_eq!(agreed.judge(&B1, None), Judgement::AsksAgain);
        let one = heard(&[(1, 'B', 1), (1, 'B', 1)]);
        assert_eq!(one.judge(&B1, None), needed, "one of them counts once");
    }

    // Shows: R7.2, R7.3.
    #[test]
    fn a_confirmation_is_of_the_same_server_and_the_same_epoch() {
        let all = roll(&[1, 2, 3]);
        for (statements, confirms) in [
            ([(1, 'A', 0), (2, 'A', 0)], Confirms::Same),
            ([(1, 'A', 2), (2, 'A', 2)], Confirms::Another),
            ([(1, 'B', 1), (2, 'B', 1)], Confirms::Another),
            ([(1, 'A', 0), (2, 'A', 2)], Confirms::Unknown),
            ([(1, 'A', 0), (9, 'A', 0)], Confirms::Unknown),
            ([(8, 'B', 1), (9, 'B', 1)], Confirms::Unknown),
        ] {
            let hearing = heard(&statements);
            assert_eq!(hearing.confirms(&A0, &all), confirms, "{statements:?}");
        }
    }

    // Shows: R7.11.
    #[test]
    fn informants_that_lost_their_files_do_not_count_by_the_roll_of_a_mark() {
        let all = roll(&[1, 2, 3]);
        let two_lost = heard(&[(8, 'A', 0), (9, 'A', 0)]);
        let unlisted = Judgement::Refused(Shortfall::Unlisted {
            listed: 0,
            needed: 2,
            known: None,
        });
        assert_eq!(two_lost.judge(&A0, Some(&all)), unlisted);
        let third = heard(&[(8, 'A', 0), (9, 'A', 0), (3, 'A', 0)]);
        let anew = Judgement::Relists(roll(&[3, 8, 9]));
        assert_eq!(third.judge(&A0, Some(&all)), Judgement::AsksAgain);
        assert_eq!(twice(&third).judge(&A0, Some(&all)), anew, "all were heard");
        let one_lost = heard(&[(1, 'B', 1), (2, 'B', 1), (9, 'A', 0)]);
        assert_eq!(
            one_lost.judge(&B1, Some(&all)),
            Judgement::Counts(all.clone())
        );
    }

    // Shows: R7.11, R7.13.
    #[test]
    fn a_roll_begins_only_where_all_have_answered_and_none_names_a_greater_epoch() {
        let unsettled = |heard, greater| {
            Judgement::Refused(Shortfall::Unsettled {
                heard,
                count: 3,
                greater,
            })
        };
        let all = roll(&[1, 2, 3]);
        let mut leading = heard(&[(8, 'A', 0), (3, 'A', 0)]);
        leading.hear(Statement {
            names: None,
            ..says(1, 'A', 0, 3)
        });
        assert_eq!(leading.judge(&A0, None), unsettled(2, None));
        let silent = heard(&[(8, 'A', 0), (3, 'A', 0)]);
        assert_eq!(silent.judge(&A0, None), unsettled(2, None));
        let younger = heard(&[(8, 'A', 0), (3, 'A', 0), (2, 'B', 1)]);
        assert_eq!(younger.judge(&A0, None), unsettled(3, Some(1)));
        assert_eq!(younger.judge(&A0, Some(&all)), unsettled(3, Some(1)));
        let as_young = heard(&[(8, 'A', 1), (9, 'B', 1), (3, 'B', 1)]);
        assert_eq!(as_young.judge(&B1, Some(&all)), unsettled(3, Some(1)));
        let older = heard(&[(8, 'A', 0), (9, 'B', 1), (3, 'B', 1)]);
        let anew = Judgement::Relists(roll(&[3, 8, 9]));
        assert_eq!(twice(&older).judge(&B1, Some(&all)), anew, "A is older");
    }

    // Shows: R7.13.
    #[test]
    fn a_roll_ends_only_where_no_more_informants_are_known_than_it_counts() {
        let mut side = Hearing::of_members();
        for by in [1, 2] {
            side.hear(Statement {
                is_moving: (by == 1).then_some(false),
                ..says(by, 'A', 0, 2)
            });
        }
        let nine = Roll::new(9, (1..=9).map(InformantId::new));
        let shrunk = side.judge(&A0, Some(&nine));
        let needed = Judgement::Refused(Shortfall::NoMajority {
            needed: 5,
            count: 9,
        });
        assert_eq!(shrunk, needed, "seven were forgotten");
        let mut other = Hearing::of_all(3);
        for by in [3, 4, 5] {
            other.hear(says(by, 'A', 0, 5));
        }
        let unlisted = Judgement::Refused(Shortfall::Unlisted {
            listed: 1,
            needed: 2,
            known: Some(5),
        });
        assert_eq!(other.judge(&A0, Some(&roll(&[1, 2, 3]))), unlisted);
    }

    // Shows: R7.11.
    #[test]
    fn a_roll_begins_with_all_informants_that_run() {
        let mut some = Hearing::of_all(1);
        some.hear(Statement {
            running: 3,
            ..says(1, 'A', 0, 3)
        });
        let refused = Judgement::Refused(Shortfall::NotAllNamed {
            named: 1,
            running: 3,
        });
        assert_eq!(some.judge(&A0, None), refused);
        let mut ghosts = Hearing::of_all(3);
        for by in [1, 2, 3] {
            ghosts.hear(says(by, 'A', 0, 7));
        }
        let all = Judgement::Lists(roll(&[1, 2, 3]));
        assert_eq!(twice(&ghosts).judge(&A0, None), all);
    }

    // Shows: R7.12.
    #[test]
    fn an_informant_joins_the_roll_that_named_the_pair_beside_a_majority_of_it() {
        let all = roll(&[1, 2, 3]);
        let hearing = heard(&[(1, 'A', 0), (2, 'A', 0), (9, 'A', 0)]);
        let id = InformantId::new;
        assert_eq!(hearing.extended(&A0, &all), None, "at different moments");
        let after = |earlier: &[_]| hearing.steady(&heard(earlier)).extended(&A0, &all);
        let extended = after(&[(1, 'A', 0), (2, 'A', 0), (9, 'A', 0)]);
        assert_eq!(extended, Some(roll(&[1, 2, 3, 9])), "3 may come back");
        assert_eq!(after(&[(1, 'A', 0), (2, 'A', 0)]), None, "9 is younger");
        assert_eq!(after(&[(2, 'A', 0), (9, 'A', 0)]), None, "1 was silent");
        let steady = |statements: &[_]| heard(statements).steady(&heard(statements));
        let full = roll(&[1, 2, 4, 5, 6, 7]);
        let agreed = steady(&[(1, 'A', 0), (2, 'A', 0), (9, 'A', 0)]);
        let extended = agreed.extended(&A0, &full).unwrap();
        assert_eq!(extended.ids().len(), 6);
        assert!([1, 2, 9].iter().all(|by| extended.has(id(*by))));
        let disagree = steady(&[(1, 'A', 0), (2, 'A', 0), (9, 'A', 1)]);
        assert_eq!(disagree.extended(&A0, &all), None);
        let no_majority = steady(&[(1, 'A', 0), (8, 'A', 0), (9, 'A', 0)]);
        assert_eq!(no_majority.extended(&A0, &all), None);
        let mut ghost = heard(&[(1, 'A', 0), (9, 'A', 0)]);
        ghost.hear(says(2, 'A', 0, 4));
        let ghost = ghost.steady(&ghost);
        assert_eq!(ghost.extended(&A0, &all), None);
    }

    // Shows: R7.10.
    #[test]
    fn a_slot_on_its_way_has_no_vote() {
        let hearing = |is_moving| {
            let mut hearing = Hearing::of_members();
            for by in [1, 2, 3] {
                let is_moving = if by == 1 { is_moving } else { None };
                hearing.hear(Statement {
                    is_moving,
                    ..says(by, 'A', 0, 3)
                });
            }
            hearing
        };
        let all = roll(&[1, 2, 3]);
        let judge = |is_moving| hearing(is_moving).judge(&A0, Some(&all));
        assert_eq!(judge(Some(false)), Judgement::Counts(all.clone()));
        assert_eq!(judge(Some(true)), Judgement::Refused(Shortfall::Moving));
        assert_eq!(judge(None), Judgement::Refused(Shortfall::OwnerSilent));
        let confirms = |is_moving| hearing(is_moving).confirms(&A0, &all);
        assert_eq!(confirms(Some(true)), Confirms::Moving);
        assert_eq!(confirms(None), Confirms::Unknown);
    }
}
