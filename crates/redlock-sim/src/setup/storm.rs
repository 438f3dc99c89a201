//! The storm of a world: what the network does by itself, and how many faults there are.

use super::{MS, Micros, SECOND};
use crate::{Plan, random::Random};

/// What the network does without being told to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net {
    /// How many messages in a thousand are slow.
    pub(crate) slow: u64,
    pub(crate) slowest: Micros,
    /// How many answers in a thousand come twice.
    pub(crate) twice: u64,
    /// How many calls in a thousand a node refuses as a whole.
    pub(crate) refused: u64,
}

/// How many faults of each kind there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storm {
    pub(crate) crashes: u64,
    pub(crate) outages: u64,
    pub(crate) promotions: u64,
    pub(crate) flushes: u64,
    pub(crate) freezes: u64,
    pub(crate) cuts: u64,
    pub(crate) holes: u64,
    pub(crate) isolations: u64,
    pub(crate) pauses: u64,
    pub(crate) kills: u64,
    pub(crate) steps: u64,
}

impl Net {
    pub(super) fn draw(random: &mut Random) -> Self {
        let (slow, slowest) = random.pick(&[
            (0, 0),
            (20, 20 * MS),
            (10, 100 * MS),
            (10, 400 * MS),
            (2, 3 * SECOND),
        ]);
        Self {
            slow,
            slowest,
            twice: random.pick(&[0, 0, 50]),
            refused: random.pick(&[0, 0, 0, 20]),
        }
    }
}

impl Storm {
    pub(super) fn draw(plan: Plan, random: &mut Random) -> Self {
        let mut up_to = |choices: &[u64]| {
            let most = random.pick(choices);
            random.between(0, most)
        };
        Self {
            crashes: up_to(&[0, 2, 4, 8]),
            outages: up_to(&[0, 0, 0, 0, 1, 2]),
            promotions: up_to(&[0, 0, 2]),
            flushes: up_to(&[0, 0, 2]),
            freezes: up_to(&[0, 2, 5]),
            cuts: up_to(&[0, 3, 10, 20]),
            holes: up_to(&[0, 2, 6]),
            isolations: up_to(&[0, 1, 3]),
            pauses: up_to(&[0, 3, 8]),
            kills: up_to(&[0, 0, 1, 2]),
            steps: match plan {
                Plan::ClockSteps => 1 + up_to(&[1, 3, 6]),
                // They are drawn where they are put in order.
                Plan::Default
                | Plan::Rollback
                | Plan::Strangers
                | Plan::OneGone
                | Plan::Sets
                | Plan::Shared
                | Plan::Slices
                | Plan::Ticks
                | Plan::TicksClocks
                | Plan::TicksBack
                | Plan::Named => 0,
            },
        }
    }
}

impl Storm {
    /// Draws a storm in which nodes lose data one after the other, and clients what they have seen.
    pub(super) fn of_losses(plan: Plan, random: &mut Random) -> Self {
        Self {
            crashes: random.between(4, 10),
            kills: random.between(2, 6),
            outages: random.below(2),
            ..Self::draw(plan, random)
        }
    }
}
