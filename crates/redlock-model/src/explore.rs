//! The search: every state that can be reached, the nearest first, and the way to one of them.

use crate::seen::Seen;

/// A world: its states, what can happen in each, and what must never happen.
pub(crate) trait World {
    /// A state; the world begins with the default one.
    type State: Copy + Default + PartialEq;
    type Step: Copy + PartialEq;
    /// Something that must never happen.
    type Breach;

    /// Returns the number of a state; states that the search need not tell apart have one number.
    fn number(&self, state: &Self::State) -> u128;

    /// Returns the state of such a number.
    fn state(&self, number: u128) -> Self::State;

    /// Tells all that can happen next; the same step may be told more than once.
    fn steps(&self, state: &Self::State, tell: impl FnMut(Self::Step));

    /// Returns what is true after a step, and whether that must never be.
    fn apply(&self, state: &Self::State, step: Self::Step) -> (Self::State, Option<Self::Breach>);
}

/// What a search came to.
pub(crate) struct Explored {
    pub(crate) seen: Seen,
    pub(crate) end: End,
}

/// Why a search ended.
pub(crate) enum End {
    /// It has seen every state that can be reached.
    All,
    /// Something happened that must never happen, after the states of these numbers.
    Breach(Vec<u128>),
    /// It has seen more states than its limit.
    Limit,
}

/// Explores all that can happen, up to the first breach; `count` is called with each step that is taken.
pub(crate) fn explore<W: World>(
    world: &W,
    limit: usize,
    mut count: impl FnMut(&W::Step),
) -> Explored {
    let limit = limit.min(Seen::MOST);
    let mut seen = Seen::new();
    let mut steps = Vec::new();
    seen.insert(world.number(&W::State::default()), 0);
    let mut place = 0;
    while let Some(number) = seen.get(place) {
        if seen.len() > limit {
            let end = End::Limit;
            return Explored { seen, end };
        }
        let state = world.state(number);
        steps.clear();
        world.steps(&state, |step| {
            if !steps.contains(&step) {
                steps.push(step);
            }
        });
        let parent = u32::try_from(place).expect("a place is below MOST, as the limit is");
        for &step in &steps {
            count(&step);
            let (next, breach) = world.apply(&state, step);
            if breach.is_some() {
                let end = End::Breach(seen.path(place));
                return Explored { seen, end };
            }
            if next != state {
                seen.insert(world.number(&next), parent);
            }
        }
        place += 1;
    }
    let end = End::All;
    Explored { seen, end }
}

/// A step of a way.
pub(crate) struct Taken<W: World> {
    pub(crate) step: W::Step,
    pub(crate) before: W::State,
    pub(crate) after: W::State,
    pub(crate) breach: Option<W::Breach>,
}

/// Returns the steps of a way through the states of these numbers, and if it leads to a breach, the step to that.
///
/// Each state on the way may have other names than the one before it; in the steps, everything has the name that it had at
/// first.
/// Only where a decision depends on names, as that of clients with views of their own, names change on the way.
pub(crate) fn walk<W: World>(world: &W, way: &[u128], leads_to_breach: bool) -> Vec<Taken<W>> {
    let goals = way[1..].iter().copied().map(Some);
    let goals = goals.chain(leads_to_breach.then_some(None));
    let mut taken = Vec::new();
    let mut state = W::State::default();
    for (number, goal) in way.iter().zip(goals) {
        let leads_there = |next: &W::State, is_breach: bool| match goal {
            Some(goal) => !is_breach && world.number(next) == goal,
            None => is_breach,
        };
        let found = first(world, state, leads_there)
            .or_else(|| first(world, world.state(*number), leads_there))
            .expect("the search took this way");
        state = found.after;
        taken.push(found);
    }
    taken
}

/// Returns the first step of a state that leads to such a state, by a breach or without one.
fn first<W: World>(
    world: &W,
    before: W::State,
    is_such: impl Fn(&W::State, bool) -> bool,
) -> Option<Taken<W>> {
    let mut found = None;
    world.steps(&before, |step| {
        if found.is_none() {
            let (after, breach) = world.apply(&before, step);
            found = is_such(&after, breach.is_some()).then_some(Taken {
                step,
                before,
                after,
                breach,
            });
        }
    });
    found
}
