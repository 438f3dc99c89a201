//! The findings of the doctor.

use std::{cmp::Reverse, sync::Arc};

pub use crate::snapshot::{FindingSnapshot as Finding, Severity};

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Adds what was found at a node, or in all of them together.
    pub fn add(
        &mut self,
        level: Severity,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push(Finding {
            level,
            check: check.to_owned(),
            node: node.map(ToString::to_string),
            found: found.into(),
            advice: advice.into(),
        });
    }

    /// Adds a note.
    pub fn note(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Note, node, check, found, advice);
    }

    /// Adds a warning.
    pub fn warn(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Warning, node, check, found, advice);
    }

    /// Adds a failure.
    pub fn fail(
        &mut self,
        node: Option<&Arc<str>>,
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Failure, node, check, found, advice);
    }

    /// Adds words to a failure that a check has found at a node, if it has.
    pub fn add_to_failure(&mut self, node: &str, check: &str, words: &str) {
        let mut found = self.0.iter_mut();
        let failure = found.find(|f| {
            f.level == Severity::Failure && f.check == check && f.node.as_deref() == Some(node)
        });
        if let Some(failure) = failure {
            failure.found.push_str(words);
        }
    }

    /// Returns the findings, the worst first, and those of all nodes together before those of one.
    pub fn worst_first(mut self) -> Vec<Finding> {
        self.0
            .sort_by_key(|finding| (Reverse(finding.level), finding.node.is_some()));
        self.0
    }

    /// Returns how much the worst finding matters.
    pub fn worst(&self) -> Option<Severity> {
        self.0.iter().map(|finding| finding.level).max()
    }

    /// Returns whether a check has found something at a node.
    pub fn has(&self, node: &str, check: &str) -> bool {
        let mut found = self.0.iter();
        found.any(|f| f.check == check && f.node.as_deref() == Some(node))
    }
}
