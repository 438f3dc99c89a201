//! What informants do: elections, failovers and hellos.

use super::{
    NamedCheck,
    state::{Failover, Informant, Pair, State, other},
    step::Step,
};

impl NamedCheck {
    /// Tells all that an informant can do next.
    pub(super) fn steps_of_informant(
        &self,
        state: &State,
        informant: usize,
        tell: &mut impl FnMut(Step),
    ) {
        let own = state.informants[informant];
        match own.failover {
            Failover::None => self.elections(state, informant, tell),
            Failover::Elected(_) => {
                tell(Step::Promote { leader: informant });
                tell(Step::Abandon { leader: informant });
            }
            Failover::Promoted => tell(Step::End { leader: informant }),
        }
        for to in 0..self.world.informants {
            if own.epoch > state.informants[to].epoch {
                let (server, epoch) = (own.advertises(), own.epoch);
                tell(Step::Hello {
                    from: informant,
                    to,
                    server,
                    epoch,
                });
            }
        }
        let old = other(own.advertises());
        let is_elected = matches!(own.failover, Failover::Elected(_));
        let may_demote = !self.world.is_plain && !is_elected;
        if may_demote && state.servers[usize::from(old)].is_master {
            tell(Step::Demote {
                informant,
                server: old,
            });
        }
        if own.epoch > 0 || own.seen > 0 {
            if state.lost < self.world.lost {
                tell(Step::Lose { informant });
            }
            if state.replaced < self.world.replaced {
                tell(Step::Replace {
                    informant,
                    server: own.server,
                });
            }
        }
        if state.resets() < self.world.resets && !own.was_reset {
            tell(Step::Reset { informant });
        }
    }

    /// Returns what an informant names to clients, if it does.
    pub(super) fn named_by(&self, informant: &Informant) -> Option<Pair> {
        let is_silent = self.world.is_flagged && informant.failover == Failover::Promoted;
        (!is_silent).then(|| informant.tells())
    }

    /// Tells all elections of an informant, each by the least majority of those it knows.
    fn elections(&self, state: &State, leader: usize, tell: &mut impl FnMut(Step)) {
        let was_reset = state.informants[leader].was_reset;
        let known = (0..self.world.informants)
            .filter(|it| !was_reset || state.informants[*it].was_reset)
            .fold(0_u8, |set, it| set | 1 << it);
        let needed = known.count_ones() / 2 + 1;
        for voters in 0..1_u8 << self.world.informants {
            let are_known = voters & !known == 0 && voters >> leader & 1 == 1;
            if !are_known || voters.count_ones() != needed {
                continue;
            }
            let seen = members(voters).map(|it| state.informants[it].seen).max();
            let epoch = seen.unwrap_or(0) + 1;
            if epoch <= self.world.failovers {
                let server = other(state.informants[leader].server);
                let promotes = !self.world.has_late_promotions;
                tell(Step::Elect {
                    leader,
                    voters,
                    epoch,
                    server,
                    promotes,
                });
            }
        }
    }

    /// A leader promotes the other server: one that takes itself for a master stays as it is.
    pub(super) fn promote(&self, state: &mut State, leader: usize, epoch: u8) {
        let informant = &mut state.informants[leader];
        let server = other(informant.server);
        informant.epoch = epoch;
        informant.seen = informant.seen.max(epoch);
        if self.world.has_false_pair {
            informant.failover = Failover::Promoted;
        } else {
            informant.failover = Failover::None;
            informant.server = server;
        }
        let server = &mut state.servers[usize::from(server)];
        if !server.is_master || self.world.has_new_data {
            server.is_master = true;
            server.mark.estrange();
        }
    }
}

/// An informant takes the pair of another one, and ends a failover of its own.
pub(super) fn hello(informant: &mut Informant, server: u8, epoch: u8) {
    informant.server = server;
    informant.epoch = epoch;
    informant.seen = informant.seen.max(epoch);
    informant.failover = Failover::None;
}

/// Returns the members of a set.
pub(super) fn members(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |it| set >> it & 1 == 1)
}
