//! What is to be checked.

use std::fmt;

use super::{NamedMutation, state::INFORMANTS};

/// By which rules clients count on a server.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum NamedRules {
    /// A majority of the informants names the same server, each under an epoch of its own.
    ///
    /// A majority is one of as many informants as a client's configuration names, or more if one that answers knows of more.
    /// The mark has neither an epoch nor a roll.
    Server,
    /// A majority of the roll names the same server under the same epoch, and the mark has both: the rules of R7.
    Term,
}

/// What can happen in a world of named servers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[must_use = "a world is a part of a check"]
pub struct NamedWorld {
    pub(super) informants: usize,
    pub(super) failovers: u8,
    pub(super) lost: u8,
    pub(super) replaced: u8,
    pub(super) restarts: u8,
    pub(super) resets: u8,
    pub(super) ttl: u8,
    pub(super) freshness: u8,
    pub(super) has_false_pair: bool,
    pub(super) is_flagged: bool,
    pub(super) has_late_promotions: bool,
    pub(super) has_new_data: bool,
    pub(super) has_late_requests: bool,
    pub(super) has_slow_answers: bool,
    pub(super) is_plain: bool,
}

impl NamedWorld {
    /// Makes a world of three informants, with epochs up to `failovers`.
    ///
    /// A lease lasts for a step of the clocks, as a confirmation does, and nothing else goes wrong.
    pub const fn of(failovers: u8) -> Self {
        Self {
            informants: 3,
            failovers,
            lost: 0,
            replaced: 0,
            restarts: 0,
            resets: 0,
            ttl: 1,
            freshness: 1,
            has_false_pair: false,
            is_flagged: false,
            has_late_promotions: false,
            has_new_data: false,
            has_late_requests: false,
            has_slow_answers: false,
            is_plain: false,
        }
    }

    /// Has five informants, of which up to `resets` are made to forget the others.
    ///
    /// An informant that was reset knows the others that were, and those that were not know all.
    pub const fn five(mut self, resets: u8) -> Self {
        self.informants = INFORMANTS;
        self.resets = resets;
        self
    }

    /// Lets informants lose their files, up to so often in all: each comes back with another id, and names A under epoch 0.
    pub const fn lost(mut self, lost: u8) -> Self {
        self.lost = lost;
        self
    }

    /// Lets informants be replaced, up to so often in all: each comes back with another id, and names the server that it has
    /// named under epoch 0.
    pub const fn replaced(mut self, replaced: u8) -> Self {
        self.replaced = replaced;
        self
    }

    /// Lets servers restart, with or without their data, up to so often in all.
    pub const fn restarts(mut self, restarts: u8) -> Self {
        self.restarts = restarts;
        self
    }

    /// Sets for how many steps of the clocks a lease lasts, and a confirmation.
    pub const fn clocks(mut self, ttl: u8, freshness: u8) -> Self {
        self.ttl = ttl;
        self.freshness = freshness;
        self
    }

    /// Lets the leader of a failover tell clients of the old server under the new epoch until the failover is over.
    pub const fn false_pair(mut self) -> Self {
        self.has_false_pair = true;
        self
    }

    /// Lets the leader of a failover say that the failover goes on, so that it names no server to clients meanwhile.
    pub const fn flagged(mut self) -> Self {
        self.is_flagged = true;
        self
    }

    /// Lets a leader promote a server long after its election, or never.
    pub const fn late_promotions(mut self) -> Self {
        self.has_late_promotions = true;
        self
    }

    /// Gives a server other data with each promotion, also if it takes itself for a master: no real server does that.
    pub const fn new_data(mut self) -> Self {
        self.has_new_data = true;
        self
    }

    /// Lets requests of clients take any time.
    pub const fn late_requests(mut self) -> Self {
        self.has_late_requests = true;
        self
    }

    /// Lets each answer take its own time, in one inquiry at a time.
    pub const fn slow_answers(mut self) -> Self {
        self.has_slow_answers = true;
        self
    }

    /// Leaves out what makes a world large.
    ///
    /// No server is made a replica or gets the data of the other one, and no client ends its session by itself.
    pub const fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }
}

/// A check of a node whose server informants name.
///
/// ```
/// use redlock_model::{NamedCheck, NamedMutation, NamedRules, NamedWorld};
///
/// let world = NamedWorld::of(2);
/// let check = NamedCheck::new(NamedRules::Term, world).unwrap();
/// assert!(check.run().holds());
/// let broken = check.mutation(NamedMutation::NoEpochInMark).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct NamedCheck {
    pub(super) rules: NamedRules,
    pub(super) world: NamedWorld,
    pub(super) mutation: Option<NamedMutation>,
}

impl NamedCheck {
    /// Returns the smallest world that shows a broken rule, with that rule broken.
    pub const fn that_notices(mutation: NamedMutation) -> Self {
        use NamedMutation as Broken;
        let world = match mutation {
            Broken::NoEpochInMark
            | Broken::GreatestEpoch
            | Broken::LeastEpoch
            | Broken::ServerConfirms => NamedWorld::of(2),
            Broken::ShortQuarantine => NamedWorld::of(1),
            Broken::NumberShrinks => NamedWorld::of(1).five(2),
            Broken::AnyIdCounts | Broken::RelistsUnheard | Broken::RelistsUnderSmaller => {
                NamedWorld::of(1).lost(1)
            }
            Broken::ListsUnheard | Broken::ListsUnderSmaller => {
                NamedWorld::of(1).lost(1).restarts(1).plain()
            }
            Broken::RelistsInPlace | Broken::JoinsUnconfirmed => NamedWorld::of(1).lost(2),
            Broken::JoinsUnsteady => NamedWorld::of(1).lost(2).slow_answers().plain(),
            Broken::BeginsUnsteady | Broken::YoungJoins => {
                NamedWorld::of(1).lost(1).slow_answers().plain()
            }
        };
        let (rules, mutation) = (NamedRules::Term, Some(mutation));
        Self {
            rules,
            world,
            mutation,
        }
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: NamedMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    pub(super) fn breaks(&self, mutation: NamedMutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Returns whether it does not matter which client is which.
    ///
    /// By the rules of servers, the clients of five informants name three of them each, as the views of these differ.
    pub(super) fn are_clients_alike(&self) -> bool {
        self.rules == NamedRules::Term || self.world.informants < INFORMANTS
    }

    /// Returns the informants that a client's configuration names, as bits.
    pub(super) fn url(&self, by: usize) -> u8 {
        match (self.are_clients_alike(), by) {
            (true, _) => (1 << self.world.informants) - 1,
            (false, 0) => 0b0_0111,
            (false, _) => 0b1_1100,
        }
    }
}

impl fmt::Display for NamedCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = &self.world;
        let rules = match self.rules {
            NamedRules::Server => "servers",
            NamedRules::Term => "terms",
        };
        let (informants, failovers) = (world.informants, world.failovers);
        write!(
            f,
            "named: {rules}, {informants} informants, {failovers} failovers"
        )?;
        let numbers = [
            (world.lost, "lost files"),
            (world.replaced, "replaced"),
            (world.restarts, "restarts"),
            (world.resets, "resets"),
        ];
        for (number, what) in numbers.into_iter().filter(|(number, _)| *number > 0) {
            write!(f, ", {number} {what}")?;
        }
        let flags = [
            (world.has_false_pair, "false pair"),
            (world.is_flagged, "flagged"),
            (world.has_late_promotions, "late promotions"),
            (world.has_new_data, "new data"),
            (world.has_late_requests, "late requests"),
            (world.has_slow_answers, "slow answers"),
            (world.is_plain, "plain"),
        ];
        for (_, what) in flags.into_iter().filter(|(is_there, _)| *is_there) {
            write!(f, ", {what}")?;
        }
        if (world.ttl, world.freshness) != (1, 1) {
            write!(f, ", lease {}, freshness {}", world.ttl, world.freshness)?;
        }
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}
