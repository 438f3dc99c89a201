use std::sync::Arc;

use serde::Serialize;

use crate::output::Mark;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Nothing is wrong, but a user may want to know it.
    Note,
    /// It works, and something should be changed.
    Warning,
    /// It does not work, or is not safe.
    Failure,
}

/// What a check has found, and what to do about it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// Which check it was: a name that stays as it is.
    pub(super) check: &'static str,
    /// The node; `None` for all of them together.
    pub(super) node: Option<String>,
    pub(super) found: String,
    pub(super) advice: String,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Level {
    pub(super) const fn mark(self) -> Mark {
        match self {
            Self::Note => Mark::Note,
            Self::Warning => Mark::Warning,
            Self::Failure => Mark::Bad,
        }
    }
}

impl Findings {
    /// Adds what was found at a node.
    pub(super) fn at(
        &mut self,
        node: &Arc<str>,
        level: Level,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let node = Some(node.to_string());
        self.push(node, level, check, found.into(), advice.into());
    }

    /// Adds what was found in all of them together.
    pub(super) fn over_all(
        &mut self,
        level: Level,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.push(None, level, check, found.into(), advice.into());
    }

    /// Adds words to a failure that a check has found at a node, if it has.
    pub(super) fn add_to_failure(&mut self, node: &str, check: &str, words: &str) {
        let mut found = self.0.iter_mut();
        let failure = found.find(|f| {
            f.level == Level::Failure && f.check == check && f.node.as_deref() == Some(node)
        });
        if let Some(failure) = failure {
            failure.found.push_str(words);
        }
    }

    /// Returns how many findings have this level.
    pub(super) fn count(&self, level: Level) -> usize {
        self.0
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    }

    /// Returns whether a check has found something at a node.
    pub(super) fn has(&self, node: &str, check: &str) -> bool {
        let mut found = self.0.iter();
        found.any(|f| f.check == check && f.node.as_deref() == Some(node))
    }

    fn push(
        &mut self,
        node: Option<String>,
        level: Level,
        check: &'static str,
        found: String,
        advice: String,
    ) {
        self.0.push(Finding {
            level,
            check,
            node,
            found,
            advice,
        });
    }
}
