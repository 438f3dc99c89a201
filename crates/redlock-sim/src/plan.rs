use std::{fmt, str::FromStr};

use crate::Violation;

/// The plan of a world: the assumptions of the protocol that hold in it, and so the promises that it checks.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Plan {
    /// All assumptions hold: nothing may go wrong.
    #[default]
    Default,
    /// Wall clocks of nodes are set forward and back while the nodes keep keys: leases may overlap, and nothing else
    /// may go wrong.
    ClockSteps,
    /// The data of a few running nodes is replaced by older data without a sign, which the protocol assumes not to
    /// happen: leases may overlap and tokens may be out of order, and nothing else may go wrong.
    Rollback,
    /// Some clients of the namespace use another longest time to live, or another error of rates, or trust persistence;
    /// too few nodes lose their data for these clients to win anything.
    /// Nothing may go wrong, with one exception: a node that lost its data may belong to these clients, and keeps the
    /// other clients from letting any node vote if it remembers longer leases.
    /// In some worlds these clients take the place of the others, one after the other.
    /// In some worlds all nodes but one lose their data at once, and the one that is left remembers the longer leases
    /// and is never out of reach.
    Strangers,
    /// All assumptions hold, acquires ask a majority first, and one node is lost again and again, at any moment: nothing
    /// may go wrong, no client loses a lease that it renews, and no acquire fails but for another holder.
    OneGone,
    /// All assumptions hold, and some clients lock several keys together that other clients lock one by one: nothing
    /// may go wrong.
    Sets,
    /// All assumptions hold, and many clients share what they lock, keys or sets of keys: nothing may go wrong.
    Shared,
    /// All assumptions hold, all nodes are well and quick, and the clients get their CPU in slices: nothing may go wrong,
    /// no lease may be lost, and no acquire may fail but for another holder.
    Slices,
    /// All assumptions hold, and the clients lock jobs and claim their ticks: nothing may go wrong.
    Ticks,
    /// As [`Ticks`](Self::Ticks), and all wall clocks of nodes and replicas are set while nodes lose data.
    /// No node's clock is set back by more than the assumption about ticks allows, and some clocks are far behind for
    /// some time and agree with no other clock.
    /// Leases may overlap and starts may change their order, but no tick may start twice, or be claimed after a later
    /// one.
    TicksClocks,
    /// As [`TicksClocks`](Self::TicksClocks), and the clocks of all nodes are set back by more than that while nodes
    /// lose data: ticks may start twice and out of order, and nothing else may go wrong.
    TicksBack,
    /// All assumptions hold, and each node has two servers, one of which informants name under an epoch: failovers there
    /// and back, while informants and clients are cut off and informants lose their files.
    /// Nothing may go wrong.
    Named,
}

impl Plan {
    /// All plans.
    pub const ALL: [Self; 12] = [
        Self::Default,
        Self::ClockSteps,
        Self::Rollback,
        Self::Strangers,
        Self::OneGone,
        Self::Sets,
        Self::Shared,
        Self::Slices,
        Self::Ticks,
        Self::TicksClocks,
        Self::TicksBack,
        Self::Named,
    ];

    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            // Shows: A2.
            Self::ClockSteps => "clock-steps",
            // Shows: A3.
            Self::Rollback => "rollback",
            // Shows: A4.
            Self::Strangers => "strangers",
            // Shows: T6.3, T6.6.
            Self::OneGone => "one-gone",
            Self::Sets => "sets",
            // Shows: R4.8.
            Self::Shared => "shared",
            Self::Slices => "slices",
            // Shows: T4.10.
            Self::Ticks => "ticks",
            Self::TicksClocks => "ticks-clocks",
            // Shows: A5.
            Self::TicksBack => "ticks-back",
            // Shows: R7.3, R7.5, R7.11.
            Self::Named => "named",
        }
    }

    /// Returns whether what is locked are jobs.
    pub(crate) const fn has_jobs(self) -> bool {
        matches!(self, Self::Ticks | Self::TicksClocks | Self::TicksBack)
    }

    /// Returns whether nodes' clocks are set while they keep keys.
    pub(crate) const fn sets_clocks(self) -> bool {
        matches!(self, Self::ClockSteps | Self::TicksClocks | Self::TicksBack)
    }

    /// Returns whether the clocks of replicas are set too, and each clock as often as it may be.
    pub(crate) const fn sets_all_clocks(self) -> bool {
        matches!(self, Self::TicksClocks | Self::TicksBack)
    }

    /// Returns whether all assumptions hold in it, for all clients.
    pub(crate) const fn holds_all(self) -> bool {
        matches!(
            self,
            Self::Default | Self::OneGone | Self::Sets | Self::Shared | Self::Ticks | Self::Named
        )
    }

    /// Returns whether something may go wrong in it.
    pub(crate) const fn excuses(self, violation: &Violation) -> bool {
        match self {
            Self::Default
            | Self::OneGone
            | Self::Sets
            | Self::Shared
            | Self::Slices
            | Self::Ticks
            | Self::Named => false,
            Self::ClockSteps => violation.needs_steady_clocks(),
            // By what strangers take to be the longest time to live.
            Self::Strangers => matches!(violation, Violation::EarlyVote { .. }),
            Self::Rollback => {
                // A line that is back gives a key to an owner that the node has refused since then.
                let of_data = matches!(
                    violation,
                    Violation::TokenOrder { .. }
                        | Violation::EarlyVote { .. }
                        | Violation::Forgotten { .. }
                        | Violation::KeyLeft { .. }
                );
                of_data || violation.needs_steady_clocks()
            }
            // A quarantine bears two steps forward.
            Self::TicksClocks => {
                let of_steps = matches!(violation, Violation::EarlyVote { .. });
                of_steps || violation.needs_steady_clocks()
            }
            Self::TicksBack => {
                let of_ticks = matches!(
                    violation,
                    Violation::StartedAgain { .. } | Violation::Overtaken { .. }
                );
                of_ticks || Self::TicksClocks.excuses(violation)
            }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Plan {
    type Err = UnknownPlan;

    fn from_str(name: &str) -> Result<Self, UnknownPlan> {
        let named = Self::ALL.into_iter().find(|plan| plan.name() == name);
        named.ok_or(UnknownPlan(()))
    }
}

/// A name that no [`Plan`] has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownPlan(());

impl fmt::Display for UnknownPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Plan::ALL.map(Plan::name).join(", ");
        write!(f, "no such plan; there are {names}")
    }
}

impl std::error::Error for UnknownPlan {}
