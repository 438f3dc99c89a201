//! The outcome of a check.

use std::fmt::{Display, Write as _};

use crate::{
    explore::{End, Taken, World, explore, walk},
    liveness::{Live, first_stuck},
    seen::Seen,
};

/// The outcome of a check: the size of its world, and whether something can go wrong in it.
///
/// `C` says how often steps of some kinds were taken.
#[derive(Clone, Debug)]
pub struct Report<C, T = String> {
    states: usize,
    transitions: u64,
    bytes: usize,
    counts: C,
    verdict: Verdict<T>,
}

/// The answer of a search: whether its world keeps to what is checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict<T = String> {
    /// It keeps to it, in all states that can be reached.
    Holds,
    /// It does not; this is one of the shortest ways to a breach.
    Violated(T),
    /// There are more states than the limit, and it does in those that were reached.
    Unfinished,
}

impl<C, T> Report<C, T> {
    /// The number of states that were reached.
    pub const fn states(&self) -> usize {
        self.states
    }

    /// The number of steps that were taken, from all of these states.
    pub const fn transitions(&self) -> u64 {
        self.transitions
    }

    /// The memory that the states take, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many of the steps were of some kinds.
    pub const fn counts(&self) -> &C {
        &self.counts
    }

    /// Returns whether the world keeps to what is checked.
    pub const fn verdict(&self) -> &Verdict<T> {
        &self.verdict
    }

    /// Returns whether nothing goes wrong in any state that can be reached.
    pub const fn holds(&self) -> bool {
        matches!(self.verdict, Verdict::Holds)
    }

    /// One of the shortest ways to a breach, if there is one.
    ///
    /// A text has a line for each step and one for the breach, and everything in it has the name that it had at first.
    pub const fn trace(&self) -> Option<&T> {
        match &self.verdict {
            Verdict::Violated(trace) => Some(trace),
            _ => None,
        }
    }
}

impl<C: Default, T> Report<C, T> {
    /// Explores a world, up to the first breach or `limit` states; also returns the states that were reached.
    pub(crate) fn up_to<W: World>(
        world: &W,
        limit: usize,
        mut count: impl FnMut(&mut C, &W::Step),
        tell: impl FnOnce(Vec<Taken<W>>) -> T,
    ) -> (Self, Seen) {
        let (mut transitions, mut counts) = (0, C::default());
        let explored = explore(world, limit, |step| {
            transitions += 1;
            count(&mut counts, step);
        });
        let report = Self {
            states: explored.seen.len(),
            transitions,
            bytes: explored.seen.bytes(),
            counts,
            verdict: match explored.end {
                End::All => Verdict::Holds,
                End::Breach(way) => Verdict::Violated(tell(walk(world, &way, true))),
                End::Limit => Verdict::Unfinished,
            },
        };
        (report, explored.seen)
    }
}

impl<C: Default> Report<C> {
    /// Explores all of a world, up to the first breach; `count` is called with each step that is taken.
    pub(crate) fn of<W>(world: &W, count: impl FnMut(&mut C, &W::Step)) -> Self
    where
        W: World<Step: Display, Breach: Display>,
    {
        Self::up_to(world, usize::MAX, count, |way| text(way, None)).0
    }

    /// Does the same, and then looks for a way on from every state.
    pub(crate) fn of_live<W>(world: &W, count: impl FnMut(&mut C, &W::Step)) -> Self
    where
        W: Live<Step: Display, Breach: Display>,
    {
        let (mut report, seen) = Self::up_to(world, usize::MAX, count, |way| text(way, None));
        if report.holds()
            && let Some((place, breach)) = first_stuck(world, &seen)
        {
            let way = walk(world, &seen.path(place), false);
            report.verdict = Verdict::Violated(text(way, Some(breach)));
        }
        report
    }
}

/// Returns a line for each step of a way, and one for the breach, which is that of the last step unless it is given.
fn text<W>(way: Vec<Taken<W>>, mut breach: Option<W::Breach>) -> String
where
    W: World<Step: Display, Breach: Display>,
{
    let mut text = String::new();
    for (taken, number) in way.into_iter().zip(1..) {
        writeln!(text, "{number:>3}. {}", taken.step).unwrap_or_default();
        breach = taken.breach.or(breach);
    }
    if let Some(breach) = breach {
        text += &format!("     {breach}");
    }
    text
}

/// Declares how often the steps of a check were of some kinds, and the search by which the check is run.
macro_rules! counted {
    (
        $Check:ident by $search:ident;
        pub struct $Counts:ident {
            $($(#[$doc:meta])* $name:ident: $step:pat,)+
        }
    ) => {
        #[doc = concat!("How often a [`", stringify!($Check), "`] took steps of some kinds.")]
        #[derive(Clone, Copy, Debug, Default)]
        #[non_exhaustive]
        pub struct $Counts {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl $Check {
            /// Explores all that can happen, up to the first breach.
            pub fn run(&self) -> $crate::Report<$Counts> {
                let count = |counts: &mut $Counts, step: &Step| {
                    $(counts.$name += u64::from(matches!(step, $step));)+
                };
                $crate::Report::$search(&Rules::new(*self), count)
            }
        }
    };
}
pub(crate) use counted;
