//! All that goes wrong in a world.

use super::{Data, Fate, Fault, Faults, clocks, naming, oddities, one_gone};
use crate::{
    Plan,
    random::Random,
    setup::{Birth, MS, Micros, SECOND, Setup, Slices},
};

/// Returns when the clients of a world stand still that get their CPU in slices.
fn off_slices(setup: &Setup, slices: &Slices, random: &mut Random) -> Faults {
    let mut faults = Faults::new();
    for client in 0..setup.clients {
        let length = slices.off;
        let mut at = 100 * MS + random.below(slices.on + slices.off);
        while at < setup.horizon {
            faults.push((at, Fault::Pause { client, length }));
            at += slices.on + slices.off;
        }
    }
    faults
}

/// Draws all that goes wrong in a world, in no order.
pub(crate) fn draw(setup: &Setup, random: &mut Random, odd: &mut Random) -> Faults {
    if setup.plan == Plan::OneGone {
        return one_gone::draw(setup, random);
    }
    if let Some(slices) = &setup.slices {
        return off_slices(setup, slices, random);
    }
    let storm = setup.storm;
    // An operator that blesses nodes vouches that they have forgotten nothing, so faults begin later.
    let first = match setup.birth {
        Birth::Blessed => 800 * MS,
        Birth::Vouched | Birth::Unknown => 20 * MS,
    };
    let mut faults = Vec::with_capacity(64);
    let mut add = |random: &mut Random, count: u64, fault: &dyn Fn(&mut Random) -> Fault| {
        for _ in 0..count {
            let at = random.between(first, setup.horizon);
            faults.push((at, fault(random)));
        }
    };
    let node = |random: &mut Random| random.index(setup.nodes);
    let client = |random: &mut Random| random.index(setup.clients);
    let data = |random: &mut Random| match (setup.trust, setup.forgets) {
        (true, _) => random.pick(&[Data::Kept, Data::Kept, Data::Lost]),
        (false, false) => random.pick(&[Data::Kept, Data::Lost, Data::Lost, Data::Stale]),
        (false, true) => random.pick(&[Data::Lost, Data::Lost, Data::Lost, Data::Stale]),
    };
    let down = |random: &mut Random| random.pick(&[MS, 20 * MS, 200 * MS, SECOND]);

    add(random, storm.crashes, &|random| Fault::Crash {
        node: node(random),
        down: down(random),
        data: data(random),
    });
    add(random, storm.crashes + storm.promotions, &|random| {
        Fault::Snapshot { node: node(random) }
    });
    add(random, storm.promotions, &|random| Fault::Replace {
        node: node(random),
        data: data(random),
    });
    add(random, storm.flushes, &|random| Fault::Flush {
        node: node(random),
    });
    add(random, storm.freezes, &|random| Fault::Freeze {
        node: node(random),
        length: random.between(MS, setup.max_ttl * 3 / 2),
    });
    add(random, storm.cuts, &|random| Fault::Cut {
        client: client(random),
        node: node(random),
        fate: if random.chance(600) {
            Fate::Late(random.between(MS, 2 * setup.max_ttl))
        } else {
            Fate::Dropped
        },
        unnoticed: random.pick(&[0, 2 * MS, 100 * MS]),
    });
    add(random, storm.holes, &|random| {
        let (out, back) = random.pick(&[(true, true), (true, false), (false, true)]);
        Fault::Hole {
            client: client(random),
            node: node(random),
            out,
            back,
            length: random.between(10 * MS, 2 * SECOND),
        }
    });
    add(random, storm.pauses, &|random| {
        let client = client(random);
        let length = random.between(MS, setup.max_ttl * 3 / 2);
        if random.chance(500) {
            Fault::Pause { client, length }
        } else {
            Fault::Stumble { client, length }
        }
    });
    add(random, storm.kills, &|random| Fault::Kill {
        client: client(random),
        successor: if setup.forgets || random.chance(600) {
            Some(random.between(10 * MS, SECOND))
        } else {
            None
        },
    });
    steps(setup, random, first, &mut faults);
    if setup.plan.sets_all_clocks() {
        clocks::draw(setup, random, first, &mut faults);
    }
    outages(setup, random, first, &mut faults);
    isolations(setup, random, first, &mut faults);
    if setup.rolls {
        rolling_losses(setup, random, &mut faults);
    }
    setup.odd.faults(setup, odd, first, &mut faults);
    if let Some(named) = setup.named {
        naming::draw(setup, named, odd, &mut faults);
    }
    if let Some(strangers) = &setup.strangers {
        match strangers.keeper {
            Some(keeper) => oddities::lose_all_but(setup, keeper, odd, &mut faults),
            None => oddities::spare(setup, odd, &mut faults),
        }
        for client in setup.replaced() {
            let at = odd.between(SECOND, setup.horizon);
            let successor = None;
            faults.push((at, Fault::Kill { client, successor }));
        }
    }
    faults
}

/// Draws that every node loses its data, one after the other, and clients what they have seen.
fn rolling_losses(setup: &Setup, random: &mut Random, faults: &mut Faults) {
    let start = random.below(setup.turn());
    for node in 0..setup.nodes {
        let crash = Fault::Crash {
            node,
            down: MS,
            data: Data::Lost,
        };
        faults.push((start + node as u64 * setup.turn(), crash));
    }
    for client in 0..setup.clients {
        let kill = Fault::Kill {
            client,
            successor: Some(random.between(10 * MS, setup.turn())),
        };
        faults.push((start + random.below(setup.turn()), kill));
    }
}

/// Sets clocks of nodes: each forward once at most, since it is set right in the end too, and a quarantine
/// bears two such steps.
fn steps(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    let mut forward = vec![false; setup.nodes];
    for _ in 0..setup.storm.steps {
        let at = random.between(first, setup.horizon);
        let node = random.index(setup.nodes);
        let by = random.pick(&[300 * MS, 1_500 * MS, 5 * SECOND]);
        let by = random.between(MS, by).cast_signed();
        let is_forward = !forward[node] && random.chance(700);
        forward[node] |= is_forward;
        let by = if is_forward { by } else { -by };
        faults.push((at, Fault::Step { node, by }));
    }
}

/// Draws that many nodes go down at once.
fn outages(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    for _ in 0..setup.storm.outages {
        let at = random.between(first, setup.horizon);
        let data = if setup.trust {
            random.pick(&[Data::Kept, Data::Lost])
        } else {
            random.pick(&[Data::Kept, Data::Lost, Data::Stale])
        };
        let spared = if random.chance(500) {
            random.index(setup.nodes)
        } else {
            setup.nodes
        };
        for node in (0..setup.nodes).filter(|node| *node != spared) {
            let down = random.between(MS, 300 * MS);
            let at = at + random.between(0, 20 * MS);
            faults.push((at, Fault::Crash { node, down, data }));
        }
    }
}

/// Draws that a client is cut off from many nodes at once.
fn isolations(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Faults) {
    for _ in 0..setup.storm.isolations {
        let at = random.between(first, setup.horizon);
        let client = random.index(setup.clients);
        let (out, back) = random.pick(&[(true, true), (true, false), (false, true)]);
        let length = random.between(10 * MS, 2 * setup.max_ttl);
        for node in 0..setup.nodes {
            if random.chance(800) {
                let hole = Fault::Hole {
                    client,
                    node,
                    out,
                    back,
                    length,
                };
                faults.push((at, hole));
            }
        }
    }
}
