//! What a mutant is, and what must notice it.

use std::fmt;

/// A mistake, and what must notice it.
#[derive(Debug)]
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// The file, from the root of the repository.
    pub(super) file: &'static str,
    /// What is replaced, which is there once.
    pub(super) from: &'static str,
    /// By what.
    pub(super) to: &'static str,
    pub(super) catch: Catch,
}

/// What must fail.
#[derive(Clone, Copy, Debug)]
pub(super) enum Catch {
    /// The simulation of the protocol, within so many seeds.
    Simulation { seeds: u32, plan: &'static str },
    /// A test: the package, its target as cargo names it, and a part of the test's name.
    Test {
        package: &'static str,
        target: &'static str,
        filter: &'static str,
    },
}

/// A mistake that a test notices.
pub(super) const fn by_test(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    package: &'static str,
    target: &'static str,
    filter: &'static str,
) -> Mutant {
    Mutant {
        name,
        file,
        from,
        to,
        catch: Catch::Test {
            package,
            target,
            filter,
        },
    }
}

/// A mistake that a test of the protocol notices.
pub(super) const fn unit(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    target: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(name, file, from, to, "redlock-proto", target, filter)
}

/// A mistake that the simulation notices in worlds of a plan, within so many seeds.
pub(super) const fn by_simulation(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    plan: &'static str,
    seeds: u32,
) -> Mutant {
    Mutant {
        name,
        file,
        from,
        to,
        catch: Catch::Simulation { seeds, plan },
    }
}

/// A mistake that a test notices which has real servers.
pub(super) const fn on_servers(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    target: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(name, file, from, to, "redlock-tests", target, filter)
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation { plan, .. } => write!(f, "the simulation (plan {plan})"),
            Self::Test {
                package,
                target,
                filter,
            } => write!(f, "test {filter} of {package} ({target})"),
        }
    }
}
