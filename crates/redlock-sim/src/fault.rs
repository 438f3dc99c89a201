//! What goes wrong, and when: drawn before the world begins.

use crate::{
    random::Random,
    setup::{Birth, MS, Micros, SECOND, Setup},
};

/// Something that goes wrong at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A node ends and comes back after a while.
    Crash {
        node: usize,
        down: Micros,
        data: Data,
    },
    /// Another process takes a node's place, and no connection notices.
    Replace { node: usize, data: Data },
    /// A node keeps a copy of its data, to come back with.
    Snapshot { node: usize },
    /// A node's data is replaced by the copy that it keeps, and its run stays; the identity of the data shows it, or
    /// nothing does.
    Rewind { node: usize, shows: bool },
    /// A node is told to forget everything.
    Flush { node: usize },
    /// A node stands still, and does everything late.
    Freeze { node: usize, length: Micros },
    /// A node stands still in the middle of the next call that it is asked to do, when it has read its clock.
    Seize { node: usize, length: Micros },
    /// Operations fail on a node for a while, and others of the same call do not.
    Fail {
        node: usize,
        failing: Failing,
        length: Micros,
    },
    /// A connection breaks.
    Cut {
        client: usize,
        node: usize,
        fate: Fate,
        /// How long it takes the client to notice.
        unnoticed: Micros,
    },
    /// Nothing gets through, in these directions.
    Hole {
        client: usize,
        node: usize,
        out: bool,
        back: bool,
        length: Micros,
    },
    /// A client's address of a node leads to another, over the connection that stands and those after it.
    Route {
        client: usize,
        node: usize,
        to: usize,
    },
    /// A client stands still.
    Pause { client: usize, length: Micros },
    /// A client stands still as soon as it has asked nodes for something, before it hears of it.
    Stumble { client: usize, length: Micros },
    /// A client ends without a word, and perhaps another takes its place.
    Kill {
        client: usize,
        successor: Option<Micros>,
    },
    /// A node's clock is set.
    Step { node: usize, by: i64 },
    /// A node's clock is far behind for a while.
    Stray {
        node: usize,
        back: Micros,
        length: Micros,
    },
    /// As soon as a node is told to vote, it stands still for a while, and its clock is far behind when it goes on.
    Waver {
        node: usize,
        back: Micros,
        length: Micros,
    },
    /// A client's wall clock is set.
    StepWall { client: usize, by: i64 },
}

/// What is left of a node's data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Data {
    Kept,
    Lost,
    /// What it had when it was copied last; nothing if it never was.
    Stale,
}

/// Which operations fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Failing {
    /// Any of them, now and then.
    Some,
    /// Those that may take memory.
    Growth,
    /// All that write.
    All,
}

/// What becomes of requests that are on their way over a connection that breaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Dropped,
    /// They arrive after this time all the same, whatever is sent over the next connection.
    Late(Micros),
}

/// All that goes wrong in a world, in no order.
pub(crate) fn draw(setup: &Setup, random: &mut Random, odd: &mut Random) -> Vec<(Micros, Fault)> {
    let storm = setup.storm;
    // An operator who blesses nodes vouches that they have forgotten nothing.
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
        fate: match random.chance(600) {
            true => Fate::Late(random.between(MS, 2 * setup.max_ttl)),
            false => Fate::Dropped,
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
        match random.chance(500) {
            true => Fault::Pause { client, length },
            false => Fault::Stumble { client, length },
        }
    });
    add(random, storm.kills, &|random| Fault::Kill {
        client: client(random),
        successor: match setup.forgets || random.chance(600) {
            true => Some(random.between(10 * MS, SECOND)),
            false => None,
        },
    });
    steps(setup, random, first, &mut faults);
    if setup.plan.sets_all_clocks() {
        crate::clock_faults::draw(setup, random, first, &mut faults);
    }
    outages(setup, random, first, &mut faults);
    isolations(setup, random, first, &mut faults);
    if setup.rolls {
        rolling_losses(setup, random, &mut faults);
    }
    setup.odd.faults(setup, odd, first, &mut faults);
    if let Some(strangers) = &setup.strangers {
        match strangers.keeper {
            Some(keeper) => crate::oddities::lose_all_but(setup, keeper, odd, &mut faults),
            None => crate::oddities::spare(setup, odd, &mut faults),
        }
        for client in setup.replaced() {
            let at = odd.between(SECOND, setup.horizon);
            let successor = None;
            faults.push((at, Fault::Kill { client, successor }));
        }
    }
    faults
}

/// Every node loses its data, one after the other, and clients what they have seen.
fn rolling_losses(setup: &Setup, random: &mut Random, faults: &mut Vec<(Micros, Fault)>) {
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

/// Clocks of nodes are set: each forward once at most, since it is set right in the end too, and a quarantine
/// bears two such steps.
fn steps(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Vec<(Micros, Fault)>) {
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

/// Many nodes go down at once.
fn outages(setup: &Setup, random: &mut Random, first: Micros, faults: &mut Vec<(Micros, Fault)>) {
    for _ in 0..setup.storm.outages {
        let at = random.between(first, setup.horizon);
        let data = match setup.trust {
            true => random.pick(&[Data::Kept, Data::Lost]),
            false => random.pick(&[Data::Kept, Data::Lost, Data::Stale]),
        };
        let spared = match random.chance(500) {
            true => random.index(setup.nodes),
            false => setup.nodes,
        };
        for node in (0..setup.nodes).filter(|node| *node != spared) {
            let down = random.between(MS, 300 * MS);
            let at = at + random.between(0, 20 * MS);
            faults.push((at, Fault::Crash { node, down, data }));
        }
    }
}

/// A client is cut off from many nodes at once.
fn isolations(
    setup: &Setup,
    random: &mut Random,
    first: Micros,
    faults: &mut Vec<(Micros, Fault)>,
) {
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
