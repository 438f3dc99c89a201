//! The search: every state that can be reached, the nearest first.

use crate::seen::Seen;

/// A world: its states, what can happen in each, and what must never happen.
pub(crate) trait World {
    /// A state; the world begins with the default one.
    type State: Default + PartialEq;
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
pub(crate) struct Explored<W: World> {
    pub(crate) seen: Seen,
    pub(crate) end: End<W>,
}

/// Why a search ended.
pub(crate) enum End<W: World> {
    /// It has seen every state that can be reached.
    All,
    /// Something happened that must never happen.
    Breach {
        /// The numbers of the states before it, from the first.
        way: Vec<u128>,
        step: W::Step,
        breach: W::Breach,
    },
    /// It has seen more states than its limit.
    Limit,
}

/// Explores all that can happen, up to the first breach; `count` is told of every step that is taken.
pub(crate) fn explore<W: World>(
    world: &W,
    limit: usize,
    mut count: impl FnMut(&W::Step),
) -> Explored<W> {
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
            if let Some(breach) = breach {
                let way = seen.path(place);
                let end = End::Breach { way, step, breach };
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
