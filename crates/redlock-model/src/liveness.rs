//! Whether something good can still happen, in every state that can be reached.

use std::collections::VecDeque;

use crate::{explore::World, seen::Seen};

/// A world in which some states must lead to something.
pub(crate) trait Live: World {
    /// Returns what it would be if such a state led nowhere; `None` if it need not lead anywhere.
    fn stuck(&self, state: &Self::State) -> Option<Self::Breach>;

    /// Returns how a step counts that can happen in such a state.
    fn leads(&self, state: &Self::State, step: &Self::Step) -> Leads;
}

/// How a step counts on the way to something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leads {
    /// It is what must be possible.
    There,
    /// It may be a part of the way.
    On,
    /// No way may need it.
    Nowhere,
}

/// Returns the nearest of the states that lead nowhere, if there is one.
pub(crate) fn first_stuck<W: Live>(world: &W, seen: &Seen) -> Option<(usize, W::Breach)> {
    let mut known = vec![Known::Nothing; seen.len()];
    // Most steps lead to states with greater numbers, of which more is known then.
    for place in (0..seen.len()).rev() {
        let state = world.state(seen.get(place)?);
        if known[place] == Known::Nothing && world.stuck(&state).is_some() {
            explore_from(world, seen, place, &mut known);
        }
    }
    let place = known.iter().position(|known| *known == Known::Stuck)?;
    let state = world.state(seen.get(place)?);
    Some((place, world.stuck(&state)?))
}

/// Looks for the shortest way from a state, and notes what is known then.
fn explore_from<W: Live>(world: &W, seen: &Seen, from: usize, known: &mut [Known]) {
    // Each with the one that it was reached from, by its index.
    let mut reached = vec![(from, 0)];
    let mut queue = VecDeque::from([0]);
    known[from] = Known::Reached;
    while let Some(index) = queue.pop_front() {
        let (place, _) = reached[index];
        let Some(number) = seen.get(place) else {
            continue;
        };
        let state = world.state(number);
        let mut leads = false;
        world.steps(&state, |step| {
            let how = world.leads(&state, &step);
            leads |= how == Leads::There;
            if leads || how == Leads::Nowhere {
                return;
            }
            let (next, _) = world.apply(&state, step);
            let Some(next) = seen.find(world.number(&next)) else {
                return;
            };
            leads |= known[next] == Known::Leads;
            if known[next] == Known::Nothing {
                known[next] = Known::Reached;
                queue.push_back(reached.len());
                reached.push((next, index));
            }
        });
        if leads {
            for (place, _) in &reached {
                known[*place] = Known::Nothing;
            }
            let mut index = index;
            while known[reached[index].0] != Known::Leads {
                known[reached[index].0] = Known::Leads;
                index = reached[index].1;
            }
            return;
        }
    }
    for (place, _) in reached {
        known[place] = Known::Stuck;
    }
}

/// What is known of a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    Nothing,
    /// It was reached by the search that is going on.
    Reached,
    Leads,
    Stuck,
}
