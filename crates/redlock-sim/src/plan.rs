use std::{fmt, str::FromStr};

/// Which assumptions of the protocol hold in a world, and so what is demanded of it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Plan {
    /// All of them: nothing may go wrong.
    #[default]
    Default,
    /// Wall clocks of nodes are set forward and back while they keep keys: leases may overlap, nothing else
    /// may go wrong.
    ClockSteps,
    /// All of them hold, and what is locked are jobs, whose ticks are claimed: nothing may go wrong.
    Ticks,
}

impl Plan {
    /// All plans.
    pub const ALL: [Self; 3] = [Self::Default, Self::ClockSteps, Self::Ticks];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ClockSteps => "clock-steps",
            Self::Ticks => "ticks",
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
