//! The findings of the doctor.

use std::sync::Arc;

use serde::Serialize;

use crate::output::LineMark;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
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
    pub(super) level: Severity,
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

impl Severity {
    /// Returns a failure if it is one, or else a warning.
    pub(super) const fn failure_if(is_failure: bool) -> Self {
        match is_failure {
            true => Self::Failure,
            false => Self::Warning,
        }
    }

    pub(super) const fn mark(self) -> LineMark {
        match self {
            Self::Note => LineMark::Note,
            Self::Warning => LineMark::Warning,
            Self::Failure => LineMark::Bad,
        }
    }
}

impl Findings {
    /// Adds what was found at a node, or in all of them together.
    pub(super) fn add(
        &mut self,
        level: Severity,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push(Finding {
            level,
            check,
            node: node.map(ToString::to_string),
            found: found.into(),
            advice: advice.into(),
        });
    }

    /// Adds a note.
    pub(super) fn note(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Note, node, check, found, advice);
    }

    /// Adds a warning.
    pub(super) fn warn(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Warning, node, check, found, advice);
    }

    /// Adds a failure.
    pub(super) fn fail(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Failure, node, check, found, advice);
    }

    /// Adds words to a failure that a check has found at a node, if it has.
    pub(super) fn add_to_failure(&mut self, node: &str, check: &str, words: &str) {
        let mut found = self.0.iter_mut();
        let failure = found.find(|f| {
            f.level == Severity::Failure && f.check == check && f.node.as_deref() == Some(node)
        });
        if let Some(failure) = failure {
            failure.found.push_str(words);
        }
    }

    /// Returns how much the worst finding matters.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.0.iter().map(|finding| finding.level).max()
    }

    /// Returns whether a check has found something at a node.
    pub(super) fn has(&self, node: &str, check: &str) -> bool {
        let mut found = self.0.iter();
        found.any(|f| f.check == check && f.node.as_deref() == Some(node))
    }
}
