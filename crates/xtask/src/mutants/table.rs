//! The results: a line for each check as soon as it has ended, and the verdict.

use std::time::Duration;

use super::tree::Outcome;
use crate::step::Failed;

/// The table, printed line by line as it grows.
#[derive(Debug, Default)]
pub(super) struct Table {
    count: usize,
    harmless: usize,
    wrong: Vec<String>,
}

impl Table {
    /// Adds a mutant, which must be caught, unless it is said why it is `harmless`: then it must not be.
    pub(super) fn add(
        &mut self,
        name: &str,
        outcome: Outcome,
        harmless: Option<&str>,
        took: Duration,
    ) {
        if self.count == 0 {
            line("mutant", "caught by", "needed", "took");
        }
        self.count += 1;
        let (by, needed) = match (outcome, harmless) {
            (Outcome::Caught { by, needed, .. }, None) => (by, needed),
            (Outcome::Passed, Some(why)) => {
                self.harmless += 1;
                (format!("nothing, as it must: {why}"), String::new())
            }
            (outcome, _) => {
                self.wrong.push(name.to_owned());
                let by = match outcome {
                    Outcome::Caught { by, .. } => format!("WRONGLY: {by}"),
                    Outcome::Passed => "NOTHING".to_owned(),
                    Outcome::Broken => "NOTHING: IT DOES NOT COMPILE".to_owned(),
                };
                (by, String::new())
            }
        };
        line(name, &by, &needed, &format!("{} s", took.as_secs()));
    }

    /// Prints that all is well and how long the run took.
    ///
    /// # Errors
    ///
    /// It names the mutants that came out otherwise than they must.
    pub(super) fn verdict(&self, took: Duration) -> Result<(), Failed> {
        let took = format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60);
        if self.wrong.is_empty() {
            let caught = self.count - self.harmless;
            eprintln!(
                "\nmutants: ok: {} checks, {caught} caught, {} harmless, after {took}",
                self.count, self.harmless,
            );
            return Ok(());
        }
        Err(Failed(format!(
            "\nmutants: {} of {} checks came out otherwise than they must, after {took}: {}",
            self.wrong.len(),
            self.count,
            self.wrong.join(", ")
        )))
    }
}

fn line(name: &str, by: &str, needed: &str, took: &str) {
    eprintln!("{name:46} {took:>6} {needed:>13}  {by}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Outcome, harmless: Option<&str>) -> Result<(), Failed> {
        let mut table = Table::default();
        table.add("a", outcome, harmless, Duration::ZERO);
        table.verdict(Duration::ZERO)
    }

    fn caught() -> Outcome {
        Outcome::Caught {
            by: "a test".to_owned(),
            needed: String::new(),
            said: String::new(),
        }
    }

    #[test]
    fn only_what_is_harmless_may_survive_and_it_must() {
        assert!(verdict(caught(), None).is_ok());
        assert!(verdict(Outcome::Passed, Some("why")).is_ok());
        assert!(verdict(Outcome::Passed, None).is_err());
        assert!(verdict(caught(), Some("why")).is_err());
    }

    #[test]
    fn what_does_not_compile_proves_nothing() {
        assert!(verdict(Outcome::Broken, None).is_err());
        assert!(verdict(Outcome::Broken, Some("why")).is_err());
    }
}
