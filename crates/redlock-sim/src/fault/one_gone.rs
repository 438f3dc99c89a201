//! One node that is lost again and again, at any moment.

use super::{Data, Fate, Fault, Faults};
use crate::{
    random::Random,
    setup::{MS, SECOND, Setup},
};

/// Draws how one node is lost: killed, replaced, emptied, frozen, or out of reach of clients.
pub(super) fn draw(setup: &Setup, random: &mut Random) -> Faults {
    let node = random.index(setup.nodes);
    let mut faults = Vec::with_capacity(16);
    // Some clients begin while it is away.
    let mut at = random.pick(&[0, 0, 100 * MS]);
    while at < setup.horizon {
        faults.push((at, lose(node, setup, random)));
        if random.chance(200) {
            for client in 0..setup.clients {
                faults.push((at, out_of_reach(client, node, random)));
            }
        }
        at += random.between(MS, 3 * setup.max_ttl / 2);
    }
    faults
}

fn lose(node: usize, setup: &Setup, random: &mut Random) -> Fault {
    let data = random.pick(&[Data::Kept, Data::Lost, Data::Lost]);
    match random.below(5) {
        0 | 1 => Fault::Crash {
            node,
            down: random.pick(&[MS, 20 * MS, 200 * MS, SECOND, 3 * SECOND]),
            data,
        },
        2 => Fault::Replace { node, data },
        3 => Fault::Flush { node },
        _ => Fault::Freeze {
            node,
            length: random.between(MS, 3 * setup.max_ttl / 2),
        },
    }
}

fn out_of_reach(client: usize, node: usize, random: &mut Random) -> Fault {
    match random.below(2) {
        0 => Fault::Cut {
            client,
            node,
            fate: if random.chance(500) {
                Fate::Late(random.between(MS, SECOND))
            } else {
                Fate::Dropped
            },
            unnoticed: random.pick(&[0, 2 * MS, 100 * MS]),
        },
        _ => Fault::Hole {
            client,
            node,
            out: random.chance(500),
            back: true,
            length: random.between(10 * MS, 2 * SECOND),
        },
    }
}
