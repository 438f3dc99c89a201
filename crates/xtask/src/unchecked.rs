//! The steps for which something is missing that not every machine can have.

use std::{env, fmt};

use crate::step::Failed;

/// The steps that were not run, which the last line names.
#[derive(Debug, Default)]
pub(crate) struct Unchecked(Vec<&'static str>);

impl Unchecked {
    /// Says at once why a step is not run, and remembers it.
    pub(crate) fn note(&mut self, step: &'static str, why: &str) {
        eprintln!("== {step}: NOT CHECKED, {why}");
        self.0.push(step);
    }

    /// Notes that a step cannot be run; with `is_ci`, that is an error.
    ///
    /// # Errors
    ///
    /// `is_ci` is set.
    pub(crate) fn missing(
        &mut self,
        step: &'static str,
        why: &str,
        is_ci: bool,
    ) -> Result<(), Failed> {
        if is_ci {
            return Err(Failed(format!("== {step}: NOT CHECKED, {why}")));
        }
        self.note(step, why);
        Ok(())
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("== all was checked");
        }
        write!(f, "== NOT CHECKED, as said above: {}", self.0.join(", "))
    }
}

/// Returns whether this runs in CI, where only the result is read, and not what each step prints.
pub(crate) fn is_ci() -> bool {
    env::var_os("CI").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_nobody_tried_pass_only_where_somebody_reads_that() {
        let mut unchecked = Unchecked::default();
        let why = "promtool is missing";
        assert!(unchecked.missing("alerts", why, false).is_ok());
        let Failed(message) = unchecked.missing("alerts", why, true).unwrap_err();
        assert!(message.contains(why), "{message}");
    }

    #[test]
    fn the_last_line_says_what_was_not_checked() {
        let mut unchecked = Unchecked::default();
        assert_eq!(unchecked.to_string(), "== all was checked");
        unchecked.note("dependencies", "it is missing");
        assert!(unchecked.missing("alerts", "too", false).is_ok());
        let said = unchecked.to_string();
        assert!(
            said.ends_with("NOT CHECKED, as said above: dependencies, alerts"),
            "{said}"
        );
    }
}
