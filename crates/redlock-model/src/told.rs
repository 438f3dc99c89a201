//! What a search came to, and the way to a breach in words.

use std::fmt::{Display, Write as _};

use crate::{
    explore::{End, World, explore},
    liveness::{Live, first_stuck},
    seen::Seen,
};

/// What a search came to.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// The number of states that were reached.
    pub(crate) states: usize,
    /// The number of steps that were taken, from all of these states.
    pub(crate) transitions: u64,
    /// The memory that the states take, in bytes.
    pub(crate) bytes: usize,
    /// One of the shortest ways to a breach, a line for each step.
    pub(crate) trace: Option<String>,
}

impl Told {
    /// Explores all of a world, up to the first breach; `count` is told of every step that is taken.
    pub(crate) fn of<W>(world: &W, count: impl FnMut(&W::Step)) -> Self
    where
        W: World<Step: Display, Breach: Display>,
    {
        Self::and_seen(world, count).0
    }

    /// Does the same, and then looks for a way on from every state.
    pub(crate) fn of_live<W>(world: &W, count: impl FnMut(&W::Step)) -> Self
    where
        W: Live<Step: Display, Breach: Display>,
    {
        let (mut told, seen) = Self::and_seen(world, count);
        if told.trace.is_none()
            && let Some((place, breach)) = first_stuck(world, &seen)
        {
            told.trace = Some(trace(world, &seen.path(place), None, &breach));
        }
        told
    }

    fn and_seen<W>(world: &W, mut count: impl FnMut(&W::Step)) -> (Self, Seen)
    where
        W: World<Step: Display, Breach: Display>,
    {
        let mut transitions = 0;
        let explored = explore(world, Seen::MOST, |step| {
            transitions += 1;
            count(step);
        });
        let trace = match explored.end {
            End::All => None,
            End::Breach { way, step, breach } => Some(trace(world, &way, Some(step), &breach)),
            End::Limit => panic!("a world has more than {} states", Seen::MOST),
        };
        let told = Self {
            states: explored.seen.len(),
            transitions,
            bytes: explored.seen.bytes(),
            trace,
        };
        (told, explored.seen)
    }
}

/// Tells what happened on the way, in which everything keeps its name.
///
/// States that differ only in names have one number, so the way is walked again from the first state.
fn trace<W>(world: &W, way: &[u128], last: Option<W::Step>, breach: &W::Breach) -> String
where
    W: World<Step: Display, Breach: Display>,
{
    let mut steps = Vec::new();
    let mut state = W::State::default();
    for number in &way[1..] {
        let mut found = None;
        world.steps(&state, |step| {
            if found.is_none() {
                let (next, _) = world.apply(&state, step);
                found = (world.number(&next) == *number).then_some((step, next));
            }
        });
        if let Some((step, next)) = found {
            steps.push(step);
            state = next;
        }
    }
    if last.is_some() {
        let mut broken = None;
        world.steps(&state, |step| {
            if broken.is_none() {
                let breach = world.apply(&state, step).1;
                broken = breach.map(|breach| (step, breach));
            }
        });
        if let Some((step, breach)) = broken {
            steps.push(step);
            return lines(&steps, &breach);
        }
    }
    steps.extend(last);
    lines(&steps, breach)
}

/// Returns a line for each step, and one for the breach.
fn lines(steps: &[impl Display], breach: &impl Display) -> String {
    let mut text = String::new();
    for (step, number) in steps.iter().zip(1..) {
        writeln!(text, "{number:>3}. {step}").unwrap_or_default();
    }
    text += &format!("     {breach}");
    text
}
