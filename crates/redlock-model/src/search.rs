//! The search: every state that can be reached, the nearest first.

use crate::{
    Breach, Check, Mutation, Report, Trace, Verdict,
    explore::{End, World, explore},
    layout::Layout,
    rules::Rules,
    state::State,
    step::Step,
    symmetry::Symmetry,
};

impl Check {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> Report {
        Search::new(self).run()
    }
}

/// A search through one world.
#[derive(Debug)]
pub(crate) struct Search {
    rules: Rules,
    layout: Layout,
    symmetry: Option<Symmetry>,
    limit: usize,
}

impl Search {
    pub(crate) fn new(check: &Check) -> Self {
        let early = check.mutation == Some(Mutation::SeedEarly);
        Self {
            rules: Rules::new(check.scope, check.mutation, check.pruning),
            layout: Layout::new(check.scope, early),
            symmetry: check.symmetry.then(|| Symmetry::new(check.scope)),
            limit: check.limit,
        }
    }

    pub(crate) fn run(&self) -> Report {
        let mut report = Report::new(self.rules.scope);
        let explored = explore(self, self.limit, |step| report.count(step));
        report.states = explored.seen.len();
        report.bytes = explored.seen.bytes();
        report.verdict = match explored.end {
            End::All => Verdict::Holds,
            End::Breach { way, .. } => Verdict::Violated(self.trace(&way)),
            End::Limit => Verdict::Unfinished,
        };
        report
    }

    /// What happened on this way, and then the breach.
    ///
    /// Each state on the way may have other names than the one before it; the steps are told with the names
    /// that the clients and nodes had at first.
    /// Only if a decision depends on names, which is a defect, they change on the way.
    fn trace(&self, way: &[u128]) -> Trace {
        let mut trace = Trace::new(self.rules.scope);
        let mut state = State::default();
        for (place, number) in way.iter().enumerate() {
            let goal = way.get(place + 1);
            let leads_there = |next: &State, breach: Option<Breach>| match goal {
                Some(goal) => breach.is_none() && self.number(next) == *goal,
                None => breach.is_some(),
            };
            let found = self.first(&state, leads_there).or_else(|| {
                state = self.state(*number);
                self.first(&state, leads_there)
            });
            let (step, next, breach) = found.expect("the search took this way");
            trace.push(step, &state, &next, breach);
            state = next;
        }
        trace
    }

    /// The first step whose consequences are such.
    fn first(
        &self,
        state: &State,
        is_such: impl Fn(&State, Option<Breach>) -> bool,
    ) -> Option<(Step, State, Option<Breach>)> {
        let mut found = None;
        self.steps(state, |step| {
            if found.is_none() {
                let (next, breach) = self.apply(state, step);
                found = is_such(&next, breach).then_some((step, next, breach));
            }
        });
        found
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
    use crate::Scope;
    use std::collections::HashSet;

    fn reached(search: &Search) -> HashSet<u128> {
        let explored = explore(search, search.limit, |_| {});
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
