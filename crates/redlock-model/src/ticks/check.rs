//! What is to be checked, and what it came to.

use std::fmt;

use super::{
    TickMutation,
    rules::{Rules, Step},
    state::{CLAIMANTS, State},
};
use crate::{InvalidScope, seen::Seen};

/// A check of claims in a world of three nodes.
///
/// ```
/// use redlock_model::{TickCheck, TickMutation};
///
/// let check = TickCheck::new(2, 1).unwrap();
/// assert!(check.run().holds());
/// let broken = check.mutation(TickMutation::HorizonIgnored).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct TickCheck {
    pub(super) claimants: usize,
    /// The first of the ticks that are claimed.
    pub(super) first: u8,
    pub(super) crashes: u8,
    /// How far clocks go.
    pub(super) clock: u8,
    pub(super) strays: bool,
    pub(super) mutation: Option<TickMutation>,
}

/// What a [`TickCheck`] came to.
#[derive(Clone, Debug)]
pub struct TickReport {
    states: usize,
    transitions: u64,
    bytes: usize,
    started: u64,
    opened: u64,
    trace: Option<String>,
}

impl TickCheck {
    /// A check with so many claimants of one tick, 1 to 3, and so many losses of data, 3 at most.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn new(claimants: usize, crashes: u8) -> Result<Self, InvalidScope> {
        if !(1..=CLAIMANTS).contains(&claimants) || crashes > MOST_CRASHES {
            let message = format!(
                "there are from 1 to {CLAIMANTS} claimants and up to {MOST_CRASHES} crashes, not {claimants} and {crashes}"
            );
            return Err(InvalidScope::new(message));
        }
        Ok(Self {
            claimants,
            first: 2,
            crashes,
            clock: 1,
            strays: false,
            mutation: None,
        })
    }

    /// The smallest world that shows a broken rule, with that rule broken.
    pub const fn that_notices(mutation: TickMutation) -> Self {
        let (claimants, crashes) = match mutation {
            TickMutation::WatermarkNotCommitted
            | TickMutation::CommitBeforeMajority
            | TickMutation::StartedAndWithdrawn => (2, 0),
            TickMutation::NewestWithdrawn => (3, 0),
            _ => (2, 1),
        };
        Self {
            claimants,
            first: 2,
            crashes,
            clock: match mutation {
                TickMutation::EarlyDiffers => 2,
                _ => 1,
            },
            strays: matches!(mutation, TickMutation::HorizonOfTheTelling),
            mutation: Some(mutation),
        }
    }

    /// Each claims any of two ticks, of which the first can be claimed at once.
    pub const fn two_ticks(mut self) -> Self {
        self.first = 1;
        self
    }

    /// Clocks go on for a step more.
    pub const fn longer(mut self) -> Self {
        self.clock = 2;
        self
    }

    /// Clocks go astray, and are right again.
    pub const fn with_strays(mut self) -> Self {
        self.strays = true;
        self
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: TickMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Explores all that can happen, up to the first tick that is started twice.
    pub fn run(&self) -> TickReport {
        let rules = Rules::new(*self);
        let mut seen = Seen::new();
        let mut report = TickReport {
            states: 0,
            transitions: 0,
            bytes: 0,
            started: 0,
            opened: 0,
            trace: None,
        };
        seen.insert(State::default().number(), 0);
        let mut number = 0;
        let mut steps = Vec::new();
        'search: while let Some(encoded) = seen.get(number) {
            let state = State::of(encoded);
            steps.clear();
            rules.steps(&state, |step| steps.push(step));
            let parent = u32::try_from(number).expect("a number is below MOST");
            for step in &steps {
                let (next, again) = rules.apply(&state, *step);
                report.transitions += 1;
                report.started += u64::from(matches!(step, Step::Start { .. }));
                report.opened += u64::from(matches!(step, Step::Open { .. }));
                if let Some(tick) = again {
                    report.trace = Some(trace(&rules, &seen.path(number), *step, tick));
                    break 'search;
                }
                if next != state {
                    seen.insert(next.number(), parent);
                }
            }
            number += 1;
        }
        report.states = seen.len();
        report.bytes = seen.bytes();
        report
    }
}

/// What happened on the way; nodes may change their names from one line to the next.
fn trace(rules: &Rules, way: &[u128], last: Step, tick: u8) -> String {
    let mut lines = Vec::new();
    for pair in way.windows(2) {
        let state = State::of(pair[0]);
        let mut found = None;
        rules.steps(&state, |step| {
            let (next, _) = rules.apply(&state, step);
            if next.number() == pair[1] {
                found.get_or_insert(step);
            }
        });
        lines.extend(found.map(|step| step.to_string()));
    }
    lines.push(last.to_string());
    let numbered = lines.iter().zip(1..);
    let mut text: String = numbered
        .map(|(line, number)| format!("{number:>3}. {line}\n"))
        .collect();
    text += &format!("     tick {tick} is started twice");
    text
}

impl TickReport {
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

    /// How many of the steps started a tick.
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// How many of the steps let a node vote again.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether no tick is started twice in any state that can be reached.
    pub const fn holds(&self) -> bool {
        self.trace.is_none()
    }

    /// One of the shortest ways to a tick that is started twice, in lines.
    ///
    /// Worlds that differ only in which node is which are one, so a node may have another number in the next line.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }
}

/// As many as two bits count.
const MOST_CRASHES: u8 = 3;

impl fmt::Display for TickCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            claimants,
            first,
            crashes,
            clock,
            ..
        } = self;
        let ticks = if *first == 1 { "2 ticks" } else { "1 tick" };
        write!(
            f,
            "claims: 3 nodes, {claimants} claimants, {ticks}, {crashes} crashes, clocks up to {clock}"
        )?;
        if self.strays {
            f.write_str(", clocks astray")?;
        }
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}
