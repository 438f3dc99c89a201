//! The faults of naming: failovers there and back, cut-off and forgetful informants, deaf clients.

use super::{Data, Fault, Faults};
use crate::{
    random::Random,
    setup::{INFORMANTS, MS, Micros, Named, SECOND, Setup},
};

/// Something that happens to the informants of a node, or because of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamingFault {
    /// The other server of a node is made its master, if a majority of the informants elects a leader.
    FailOver(Failover),
    /// The server that is no master has what its master has now, and nothing that comes later.
    FallBehind,
    /// The server that the leader of the next failover would replace stands still.
    Silence { length: Micros },
    /// An informant neither hears nor tells the others anything.
    Apart { informant: usize, length: Micros },
    /// An informant stands still.
    StandStill { informant: usize, length: Micros },
    /// An informant loses its file.
    LoseFile { informant: usize },
    /// The informants are told to forget those that are gone.
    Reset,
    /// An informant makes the server that it does not name a replica of the one that it names.
    Demote { informant: usize },
    /// A client hears nothing of some informants.
    Deaf {
        client: usize,
        of: [bool; INFORMANTS],
        length: Micros,
    },
}

/// How a failover goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failover {
    /// The informant that is elected, or the one after it that can be.
    pub(crate) leader: usize,
    /// The one that votes for it.
    pub(crate) voter: usize,
    /// How long after its election it promotes the other server.
    pub(crate) promotes_in: Micros,
    /// How long after that it names that server; it names none since its election.
    pub(crate) ends_in: Micros,
    /// How long after that the old master is made a replica, if it is.
    pub(crate) demotes_in: Option<Micros>,
}

/// Draws what goes wrong with the naming of the servers of each node, and spreads other faults over both servers.
pub(super) fn draw(setup: &Setup, named: Named, random: &mut Random, faults: &mut Faults) {
    for (_, fault) in faults.iter_mut() {
        if let Fault::Crash { node, .. } | Fault::Freeze { node, .. } = fault
            && random.chance(500)
        {
            *node += setup.nodes;
        }
    }
    // With several nodes, a mistake shows only where a majority of them has the same trouble at about the same time.
    let mut at = random.between(500 * MS, 4 * SECOND);
    while at < setup.horizon {
        let gap = if random.chance(named.hasty) {
            random.between(300 * MS, 5 * SECOND)
        } else {
            random.between(6 * SECOND, 11 * SECOND)
        };
        for node in 0..setup.nodes {
            let at = at + random.below(300 * MS);
            trouble((setup, node), at, gap, random, faults);
        }
        at += gap;
    }
    faults.retain(|(at, _)| *at < setup.horizon);
}

/// Draws a failover of a node, and what goes wrong around it.
fn trouble(
    (setup, node): (&Setup, usize),
    at: Micros,
    gap: Micros,
    random: &mut Random,
    faults: &mut Faults,
) {
    let mut add = |at: Micros, what| faults.push((at, Fault::Naming { node, what }));
    let leader = random.index(INFORMANTS);
    let voter = (leader + 1 + random.index(INFORMANTS - 1)) % INFORMANTS;
    let third = INFORMANTS - leader - voter;
    if random.chance(600) {
        let lag = random.pick(&[2 * MS, 50 * MS, SECOND, 6 * SECOND]);
        add(
            at.saturating_sub(random.between(MS, lag)),
            NamingFault::FallBehind,
        );
    }
    if random.chance(400) {
        let before = random.between(MS, SECOND);
        let after = random.pick(&[MS, 500 * MS, 3 * SECOND]);
        let length = before + random.between(MS, after);
        add(at.saturating_sub(before), NamingFault::Silence { length });
    }
    if random.chance(600) {
        let before = random.between(MS, 500 * MS);
        let length = before + random.pick(&[SECOND, gap, gap, gap + 4 * SECOND]);
        add(
            at.saturating_sub(before),
            NamingFault::Apart {
                informant: third,
                length,
            },
        );
    }
    add(
        at,
        NamingFault::FailOver(Failover {
            leader,
            voter,
            promotes_in: random.pick(&[MS, MS, 200 * MS, 2 * SECOND]),
            ends_in: random.pick(&[0, 0, 300 * MS, SECOND]),
            demotes_in: match random.below(10) {
                0 | 1 => Some(random.below(500 * MS)),
                2 | 3 => Some(random.between(SECOND, 8 * SECOND)),
                _ => None,
            },
        }),
    );
    for client in 0..setup.clients {
        if random.chance(400) {
            let from = at.saturating_sub(random.below(SECOND));
            let length = random.pick(&[SECOND, 5 * SECOND, gap, gap + SECOND]);
            add(from, deaf(client, random.between(MS, length), random));
        }
    }
    if random.chance(350) {
        let informant = random.pick(&[leader, voter, voter, third]);
        let at = at + random.below(gap);
        add(at, NamingFault::LoseFile { informant });
        if random.chance(500) {
            add(at + random.below(gap), NamingFault::Reset);
        }
    }
    if random.chance(150) {
        let (informant, length) = (random.index(INFORMANTS), random.between(MS, 3 * SECOND));
        add(
            at + random.below(gap),
            NamingFault::StandStill { informant, length },
        );
    }
    if random.chance(100) {
        let informant = random.index(INFORMANTS);
        add(at + random.below(gap), NamingFault::Demote { informant });
    }
    if random.chance(100) {
        let data = random.pick(&[Data::Kept, Data::Lost]);
        let down = random.pick(&[MS, SECOND]);
        let server = node + setup.nodes * random.index(2);
        let crash = Fault::Crash {
            node: server,
            down,
            data,
        };
        faults.push((at + random.below(gap), crash));
    }
}

fn deaf(client: usize, length: Micros, random: &mut Random) -> NamingFault {
    let all = random.chance(600);
    let of = [(); INFORMANTS].map(|()| all || random.chance(500));
    NamingFault::Deaf { client, of, length }
}
