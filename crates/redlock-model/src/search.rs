//! The search: every state that can be reached, the nearest first.

use crate::{
    Breach, Check, Mutation, Report, Trace,
    explore::{Taken, World},
    layout::Layout,
    rules::Rules,
    state::State,
    step::Step,
    symmetry::Symmetry,
};

/// How often a [`Check`] took steps of some kinds.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TokenCounts {
    /// How many of the steps gave a client a token that a majority had voted for.
    pub agreed: u64,
    /// How many of the steps gave a client a token that it had to write back.
    pub written_back: u64,
    /// How many of the steps let a node vote again that had lost its counters.
    pub opened: u64,
}

impl Check {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> Report<TokenCounts, Trace> {
        let search = Search::new(self);
        let count = |counts: &mut TokenCounts, step: &Step| match step {
            Step::Settle {
                write_back: None, ..
            } => counts.agreed += 1,
            Step::Finish { .. } => counts.written_back += 1,
            Step::Open { .. } => counts.opened += 1,
            _ => {}
        };
        Report::up_to(&search, self.limit, count, |way| search.trace(way)).0
    }
}

/// A search through one world.
#[derive(Debug)]
pub(crate) struct Search {
    rules: Rules,
    layout: Layout,
    symmetry: Option<Symmetry>,
}

impl Search {
    pub(crate) fn new(check: &Check) -> Self {
        let early = check.mutation == Some(Mutation::SeedEarly);
        Self {
            rules: Rules::new(check.scope, check.mutation, check.pruning),
            layout: Layout::new(check.scope, early),
            symmetry: check.symmetry.then(|| Symmetry::new(check.scope)),
        }
    }

    fn trace(&self, way: Vec<Taken<Self>>) -> Trace {
        let mut trace = Trace::new(self.rules.scope);
        for taken in way {
            trace.push(taken.step, &taken.before, &taken.after, taken.breach);
        }
        trace
    }
}

impl World for Search {
    type State = State;
    type Step = Step;
    type Breach = Breach;

    fn number(&self, state: &State) -> u128 {
        match &self.symmetry {
            Some(symmetry) => symmetry.canonical(state, &self.layout),
            None => self.layout.encode(state),
        }
    }

    fn state(&self, number: u128) -> State {
        self.layout.decode(number)
    }

    fn steps(&self, state: &State, tell: impl FnMut(Step)) {
        self.rules.steps(state, tell);
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<Breach>) {
        self.rules.apply(state, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scope, explore::explore};
    use std::collections::HashSet;

    fn reached(search: &Search) -> HashSet<u128> {
        let explored = explore(search, usize::MAX, |_| {});
        (0..).map_while(|place| explored.seen.get(place)).collect()
    }

    fn check(nodes: usize, clients: usize, crashes: u8, proposals: u8) -> Check {
        Check::new(Scope::new(nodes, clients, crashes, proposals).unwrap())
    }

    /// Among the states that all names lead to, the search with symmetry reaches each canonical one, and
    /// nothing else.
    #[test]
    fn symmetry_leaves_out_other_names_and_nothing_else() {
        let checks = [
            check(3, 3, 0, 1),
            check(3, 2, 0, 3),
            check(3, 2, 1, 1),
            check(3, 1, 2, 1),
            check(2, 2, 0, 1).without_pruning(),
            check(3, 1, 1, 1).without_pruning(),
        ];
        for check in checks {
            let with = Search::new(&check);
            let without = Search::new(&check.without_symmetry());
            let canonical: HashSet<u128> = reached(&without)
                .into_iter()
                .map(|state| with.number(&with.state(state)))
                .collect();
            assert_eq!(canonical, reached(&with), "{check}");
        }
    }

    #[test]
    fn an_encoding_keeps_the_whole_state() {
        let checks = [
            check(3, 2, 1, 1),
            check(5, 1, 0, 3),
            check(3, 1, 2, 1).mutation(Mutation::SeedEarly),
        ];
        for check in checks {
            let search = Search::new(&check.without_symmetry());
            for encoded in reached(&search) {
                let state = search.layout.decode(encoded);
                assert_eq!(search.layout.encode(&state), encoded);
                search.rules.steps(&state, |step| {
                    let (next, _) = search.rules.apply(&state, step);
                    let encoded = search.layout.encode(&next);
                    assert_eq!(search.layout.decode(encoded), next, "{check}: {step:?}");
                });
            }
        }
    }
}
