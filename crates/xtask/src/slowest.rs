//! The slowest tests of a run, from what cargo's test harness prints.
//!
//! The harness prints no times, but it runs the tests of a program in the order of their names, a fixed number at once, and
//! prints each as it ends: so the k-th ending begins the next test.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// What is known of the tests so far.
#[derive(Debug)]
pub(crate) struct Slowest {
    at_once: usize,
    began: Instant,
    /// The endings of the present program's tests, in their order.
    ended: Vec<(String, Instant)>,
    tests: Vec<(Duration, String)>,
}

impl Slowest {
    /// Returns the record of a run in which `at_once` tests of a program run side by side.
    pub(crate) fn new(at_once: usize, now: Instant) -> Self {
        Self {
            at_once: at_once.max(1),
            began: now,
            ended: Vec::new(),
            tests: Vec::new(),
        }
    }

    /// Takes in a line of the harness, which came at `now`.
    pub(crate) fn read(&mut self, line: &str, now: Instant) {
        if line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")) {
            self.end_program();
            self.began = now;
        } else if let Some((name, _)) = line
            .strip_prefix("test ")
            .and_then(|test| test.split_once(" ... "))
        {
            self.ended.push((name.to_owned(), now));
        }
    }

    /// Returns the ten slowest tests, the slowest first, each as a line.
    pub(crate) fn lines(mut self) -> Vec<String> {
        self.end_program();
        self.tests.sort();
        let slowest = self.tests.iter().rev().take(10);
        slowest
            .map(|(took, name)| format!("{:6.1} s  {name}", took.as_secs_f64()))
            .collect()
    }

    /// Finds out how long each test of the program took that has ended.
    fn end_program(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        let at: BTreeMap<&str, Instant> = ended.iter().map(|(name, at)| (&**name, *at)).collect();
        for (number, (name, end)) in at.iter().enumerate() {
            let begun = match number.checked_sub(self.at_once) {
                None => self.began,
                Some(before) => ended[before].1,
            };
            let took = end.saturating_duration_since(begun);
            self.tests.push((took, (*name).to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_another_ends_in_the_order_of_their_names() {
        let zero = crate::step::now();
        let at = |second| zero + Duration::from_secs(second);
        let mut slowest = Slowest::new(2, zero);
        slowest.read("running 4 tests", at(1));
        // `a` and `b` begin at 1, `c` as `b` ends, and `d` as `a` ends.
        slowest.read("test b ... ok", at(3));
        slowest.read("test a ... FAILED", at(4));
        slowest.read("test d ... ok", at(9));
        slowest.read("test c ... ok", at(13));
        slowest.read("test result: FAILED. 3 passed; 1 failed", at(13));
        slowest.read("running 1 test", at(20));
        slowest.read("test e ... ok", at(26));
        let lines = slowest.lines();
        assert_eq!(
            lines,
            [
                "  10.0 s  c",
                "   6.0 s  e",
                "   5.0 s  d",
                "   3.0 s  a",
                "   2.0 s  b"
            ]
        );
    }
}
