//! A program that asks every clock; a server asks only some.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::HashMap, env, fs, process::Command};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use super::{
    compiler,
    preload::Preload,
    settings::{Setting, SettingsFile},
};

#[test]
fn a_clock_that_stands_still_does_so_for_every_function() {
    let probe = Probe::build();
    probe.publish(Setting::StandingStill(1_700_000_000_999_999));
    let told = probe.run();
    assert_eq!(told["time"], 1_700_000_000_000_000);
    for function in ["gettimeofday", "realtime", "coarse"] {
        assert_eq!(told[function], 1_700_000_000_999_999, "{function}");
    }
}

#[test]
fn a_distance_of_any_sign_is_kept_by_every_function() {
    let probe = Probe::build();
    for distance in [-3_600_000_001, -999_999, -1, 0, 1, 999_999] {
        probe.publish(Setting::Following(distance));
        probe.expect_distance(distance);
    }
}

#[test]
fn other_clocks_stay_real() {
    let probe = Probe::build();
    probe.publish(Setting::StandingStill(0));
    let clocks = [
        ("monotonic", ClockId::Monotonic),
        ("boottime", ClockId::Boottime),
    ];
    for (name, clock) in clocks {
        let before = real(clock);
        let told = probe.run()[name];
        assert!((before..=real(clock)).contains(&told), "{name}");
    }
}

/// A server that relied on it would go on between two looks at its wall clock.
#[test]
fn the_processors_counter_cannot_be_relied_on_by_a_program_with_a_clock_of_its_own() {
    let probe = Probe::build();
    probe.publish(Setting::StandingStill(0));
    let told = probe.run();
    assert_eq!((told["/proc/cpuinfo"], told["/proc/self/stat"]), (0, 1));
    fs::remove_file(probe.preload.settings()).unwrap();
    assert_eq!(probe.run()["/proc/cpuinfo"], 1);
}

#[test]
fn without_its_file_or_with_a_part_of_it_a_program_is_told_the_real_time() {
    let probe = Probe::build();
    probe.publish(Setting::StandingStill(0));
    let whole = fs::read(probe.preload.settings()).unwrap();
    fs::write(probe.preload.settings(), &whole[1..]).unwrap();
    probe.expect_distance(0);
    fs::remove_file(probe.preload.settings()).unwrap();
    probe.expect_distance(0);
}

struct Probe {
    preload: Preload,
    folder: TempDir,
}

impl Probe {
    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("probe.c");
        fs::write(&source, include_str!("../../clock/probe.c")).unwrap();
        let (compiler, arguments) = compiler::words(&env::var_os("CC").unwrap_or_default());
        let status = Command::new(compiler)
            .args(arguments)
            .arg("-o")
            .args([&folder.path().join("probe"), &source])
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        let preload = Preload::build(&folder.path().join("clock")).unwrap();
        Self { preload, folder }
    }

    fn publish(&self, setting: Setting) {
        let mut file = SettingsFile::create(self.preload.settings()).unwrap();
        file.publish(setting).unwrap();
    }

    fn run(&self) -> HashMap<String, i64> {
        let mut command = Command::new(self.folder.path().join("probe"));
        self.preload.give_to(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| {
                let (name, micros) = line.split_once(' ').unwrap();
                (name.to_owned(), micros.parse().unwrap())
            })
            .collect()
    }

    fn expect_distance(&self, distance: i64) {
        let coarse_before = real(ClockId::RealtimeCoarse) + distance;
        let before = real(ClockId::Realtime) + distance;
        let told = self.run();
        let after = real(ClockId::Realtime) + distance;
        for (function, earliest) in [
            ("time", before / 1_000_000 * 1_000_000),
            ("gettimeofday", before),
            ("realtime", before),
            ("coarse", coarse_before),
        ] {
            let told = told[function];
            assert!((earliest..=after).contains(&told), "{function} {told}");
        }
    }
}

/// Returns what the kernel says, in microseconds.
fn real(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}
