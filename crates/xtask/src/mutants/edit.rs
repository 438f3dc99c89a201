//! The change that makes a mutant.

use crate::step::Failed;

/// `source` with `from` replaced by `to`.
///
/// # Errors
///
/// `from` is not there exactly once: the code has changed, and the mutant must follow it.
pub(super) fn replaced(source: &str, from: &str, to: &str, name: &str) -> Result<String, Failed> {
    match source.matches(from).count() {
        1 => Ok(source.replacen(from, to, 1)),
        found => Err(Failed(format!(
            "mutant {name}: what it replaces is there {found} times and must be there once:\n{from}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_that_does_not_fit_is_an_error() {
        assert_eq!(replaced("a b", "a", "c", "m").unwrap(), "c b");
        assert!(replaced("a a", "a", "c", "m").is_err());
        assert!(replaced("b", "a", "c", "m").is_err());
    }
}
