//! The steps of clocks in worlds of jobs, which keep only the assumption about ticks.
//!
//! No tick may start twice, as long as no node's clock shows less after a quarantine than at its last vote before.
//! So each clock may be set back by the length of a quarantine in all.
//! Every step here keeps that, but for those of [`Plan::TicksBack`]:
//!
//! * clocks are set forward, alone or all at once, any number of times and by any amount, and never right again;
//! * each is set back by at most [`Setup::set_back`] in all;
//! * some are set back by hours, each by another number, and right again: meanwhile they agree with no other clock;
//! * the wall clocks of clients are set at will.

use super::{Data, Fault, Faults};
use crate::{
    Plan,
    random::Random,
    setup::{MS, Micros, SECOND, Setup, micros},
};

/// Draws the steps of clocks, most of them around losses of data.
pub(super) fn draw(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    let mut left = vec![setup.set_back(); setup.nodes];
    let mut hours = Hours(1);
    for _ in 0..random.between(1, 3) {
        let node = random.index(setup.nodes);
        let at = random.between(first, setup.horizon);
        let data = Data::Lost;
        let crash = Fault::Crash {
            node,
            down: MS,
            data,
        };
        faults.push((at, crash));
        let end = at + micros(setup.keyspace.quarantine().length());
        match random.below(4) {
            0 => {
                let at = random.between(at.saturating_sub(50 * MS), end);
                faults.extend(back(node, at, &mut left, random));
            }
            1 | 2 if setup.nodes > 1 => {
                let back = hours.next(random);
                let length = random.between(MS, 100 * MS);
                faults.push((at, Fault::Waver { node, back, length }));
            }
            _ => {}
        }
        if setup.plan == Plan::TicksBack {
            all(
                setup,
                random.between(at, end),
                -far(setup, random),
                random,
                faults,
            );
        }
    }
    for _ in 0..random.below(5) {
        let node = random.index(setup.nodes);
        let at = random.between(first, setup.horizon);
        match random.below(4) {
            0 => faults.extend(back(node, at, &mut left, random)),
            1 if setup.nodes > 1 => {
                let back = hours.next(random);
                let length = random.between(MS, 2 * setup.max_ttl);
                faults.push((at, Fault::Stray { node, back, length }));
            }
            2 => {
                let by = random.pick(&[300 * MS, 900 * MS, 5 * SECOND]);
                let by = random.between(MS, by).cast_signed();
                faults.push((at, Fault::Step { node, by }));
            }
            _ => {
                let by = random.between(MS, 2 * SECOND).cast_signed();
                all(setup, at, by, random, faults);
            }
        }
    }
    for _ in 0..random.below(4) {
        let client = random.index(setup.clients);
        let at = random.between(first, setup.horizon);
        let by = random.pick(&[SECOND, 5 * SECOND, 3_600 * SECOND]);
        let by = random.below(2 * by).cast_signed() - by.cast_signed();
        faults.push((at, Fault::StepWall { client, by }));
    }
    faults.retain(|(at, _)| *at < setup.horizon);
}

/// Sets a clock back by a part of what is left of what it may be.
fn back(
    node: usize,
    at: Micros,
    left: &mut [Micros],
    random: &mut Random,
) -> Option<(Micros, Fault)> {
    let by = if random.chance(500) {
        left[node]
    } else {
        random.below(left[node] + 1)
    };
    left[node] -= by;
    let by = -by.cast_signed();
    (by < 0).then_some((at, Fault::Step { node, by }))
}

/// By how many hours a clock is behind: never by one number twice, so that no two agree.
struct Hours(Micros);

impl Hours {
    fn next(&mut self, random: &mut Random) -> Micros {
        self.0 += random.between(1, 5);
        self.0 * 3_600 * SECOND
    }
}

/// Sets all clocks of nodes, nearly at once.
fn all(setup: &Setup, at: Micros, by: i64, random: &mut Random, faults: &mut Faults) {
    for node in 0..setup.nodes {
        let at = at + random.below(50 * MS);
        faults.push((at, Fault::Step { node, by }));
    }
}

/// Draws a step further than the assumption about ticks allows.
fn far(setup: &Setup, random: &mut Random) -> i64 {
    let length = micros(setup.keyspace.quarantine().length());
    (length + random.between(SECOND, 4 * SECOND)).cast_signed()
}
