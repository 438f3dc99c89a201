//! The slowest tests of a run, from what cargo's test harness prints.
//!
//! The harness prints no times, but it runs the tests of a program in the order of their names, a fixed number at once, and
//! prints each as it ends: so the k-th ending begins the next test.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// The tests that have ended so far.
#[derive(Debug)]
pub(crate) struct Slowest {
    at_once: usize,
    tests: Vec<(Duration, String)>,
}

/// The times of what one run of the harness has printed, of one program or of several in a row.
#[derive(Debug)]
pub(crate) struct Times {
    began: Instant,
    /// The endings of the present program's tests, in their order.
    ended: Vec<(String, Instant)>,
    /// The programs before it, each with its beginning.
    programs: Vec<(Instant, Vec<(String, Instant)>)>,
}

impl Times {
    /// Returns the record of a run that began at `now`.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            began: now,
            ended: Vec::new(),
            programs: Vec::new(),
        }
    }

    /// Takes in a line of the harness, which came at `now`.
    pub(crate) fn read(&mut self, line: &str, now: Instant) {
        if line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")) {
            self.end_program(now);
        } else if let Some((name, _)) = line
            .strip_prefix("test ")
            .and_then(|test| test.split_once(" ... "))
        {
            self.ended.push((name.to_owned(), now));
        }
    }

    fn end_program(&mut self, now: Instant) {
        let began = std::mem::replace(&mut self.began, now);
        self.programs.push((began, std::mem::take(&mut self.ended)));
    }
}

impl Slowest {
    /// Returns the record of programs each of which runs `at_once` tests side by side.
    pub(crate) fn new(at_once: usize) -> Self {
        Self {
            at_once: at_once.max(1),
            tests: Vec::new(),
        }
    }

    /// Finds out how long each test took that has ended in a run.
    pub(crate) fn add(&mut self, mut times: Times) {
        times.end_program(times.began);
        for (began, ended) in times.programs {
            let at: BTreeMap<&str, Instant> =
                ended.iter().map(|(name, at)| (&**name, *at)).collect();
            for (number, (name, end)) in at.iter().enumerate() {
                let begun = match number.checked_sub(self.at_once) {
                    None => began,
                    Some(before) => ended[before].1,
                };
                let took = end.saturating_duration_since(begun);
                self.tests.push((took, (*name).to_owned()));
            }
        }
    }

    /// Returns the ten slowest tests, the slowest first, each as a line.
    pub(crate) fn lines(mut self) -> Vec<String> {
        self.tests.sort();
        let slowest = self.tests.iter().rev().take(10);
        slowest
            .map(|(took, name)| format!("{:6.1} s  {name}", took.as_secs_f64()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_another_ends_in_the_order_of_their_names() {
        let zero = crate::step::now();
        let at = |second| zero + Duration::from_secs(second);
        let mut times = Times::new(zero);
        times.read("running 4 tests", at(1));
        // `a` and `b` begin at 1, `c` as `b` ends, and `d` as `a` ends.
        times.read("test b ... ok", at(3));
        times.read("test a ... FAILED", at(4));
        times.read("test d ... ok", at(9));
        times.read("test c ... ok", at(13));
        times.read("test result: FAILED. 3 passed; 1 failed", at(13));
        times.read("running 1 test", at(20));
        times.read("test e ... ok", at(26));
        let mut slowest = Slowest::new(2);
        slowest.add(times);
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
