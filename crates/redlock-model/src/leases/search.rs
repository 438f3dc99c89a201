//! The search: every state that can be reached, up to the first breach.

use super::{
    LeaseCheck,
    rules::Rules,
    state::State,
    step::{Breach, Step},
};
use crate::seen::Seen;

/// What a [`LeaseCheck`] came to.
#[derive(Clone, Debug)]
pub struct LeaseReport {
    states: usize,
    transitions: u64,
    bytes: usize,
    settled: u64,
    downgraded: u64,
    opened: u64,
    trace: Option<String>,
}

impl LeaseCheck {
    /// Explores all that can happen, up to the first breach.
    pub fn run(&self) -> LeaseReport {
        let rules = Rules::new(*self);
        let mut seen = Seen::new();
        let mut report = LeaseReport {
            states: 0,
            transitions: 0,
            bytes: 0,
            settled: 0,
            downgraded: 0,
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
                let (next, breach) = rules.apply(&state, *step);
                report.count(step);
                if let Some(breach) = breach {
                    report.trace = Some(trace(&rules, &seen.path(number), *step, breach));
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

/// Tells what happened on the way; nodes may change their names from one line to the next.
fn trace(rules: &Rules, way: &[u128], last: Step, breach: Breach) -> String {
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
    text += &format!("     {breach}");
    text
}

impl LeaseReport {
    fn count(&mut self, step: &Step) {
        self.transitions += 1;
        match step {
            Step::Settle { .. } => self.settled += 1,
            Step::Downgrade { .. } => self.downgraded += 1,
            Step::Open { .. } => self.opened += 1,
            _ => {}
        }
    }

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

    /// How many of the steps gave a client its token.
    pub const fn settled(&self) -> u64 {
        self.settled
    }

    /// How many of the steps made a writer a reader.
    pub const fn downgraded(&self) -> u64 {
        self.downgraded
    }

    /// How many of the steps let a node vote again.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether nothing goes wrong in any state that can be reached.
    pub const fn holds(&self) -> bool {
        self.trace.is_none()
    }

    /// One of the shortest ways to a breach, in lines.
    ///
    /// Worlds that differ only in which node is which are one, so a node may have another number in the next line.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }
}
