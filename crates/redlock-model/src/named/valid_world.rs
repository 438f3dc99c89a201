//! Which worlds of named servers can be explored.

use super::{NamedCheck, NamedRules, NamedWorld, number::Layout};
use crate::InvalidScope;

impl NamedCheck {
    /// Makes a check of exclusion.
    ///
    /// There are up to 3 failovers, lost files, replaced informants, restarts and steps of each time.
    /// Slow answers are of rules with terms only.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range, or if a state of this world takes more than 128 bits.
    pub fn new(rules: NamedRules, world: NamedWorld) -> Result<Self, InvalidScope> {
        let numbers = [
            ("failovers", world.failovers),
            ("lost files", world.lost),
            ("replaced informants", world.replaced),
            ("restarts", world.restarts),
            ("resets", world.resets),
        ];
        for (what, number) in numbers {
            if number > MOST {
                let message = format!("there are up to {MOST} {what}, not {number}");
                return Err(InvalidScope::new(message));
            }
        }
        for time in [world.ttl, world.freshness] {
            if !(1..=MOST).contains(&time) {
                let message = format!("times are from 1 to {MOST}, not {time}");
                return Err(InvalidScope::new(message));
            }
        }
        if world.has_slow_answers && rules != NamedRules::Term {
            let message = "slow answers are of rules with terms only".to_owned();
            return Err(InvalidScope::new(message));
        }
        let mutation = None;
        let check = Self {
            rules,
            world,
            mutation,
        };
        match Layout::new(&check).bits() {
            bits if bits <= u128::BITS => Ok(check),
            bits => Err(InvalidScope::new(format!(
                "a state takes {bits} bits, and there are {}",
                u128::BITS
            ))),
        }
    }
}

/// The greatest of the numbers of a world.
const MOST: u8 = 3;
