//! `cargo xtask ci`: what a change must pass, the quick checks first.

use std::{
    env,
    process::{Command, Stdio},
};

use crate::{
    modules,
    step::{Failed, Step},
    test,
};

/// Runs every step, and stops at the first that fails.
pub(crate) fn run() -> Result<(), Failed> {
    Step::cargo("format", "fmt --all --check").run()?;
    modules::run()?;
    Step::cargo("lints", LINTS).run()?;
    without_features()?;
    Step::cargo("documentation", DOCUMENTATION)
        .variable("RUSTDOCFLAGS", "-D warnings")
        .alone(&format!("RUSTDOCFLAGS='-D warnings' cargo {DOCUMENTATION}"))
        .run()?;
    dependencies()?;
    alerts()?;
    test::run(&[])
}

/// What a user gets who asks for no feature: each library compiles without any.
///
/// One at a time: checked together, they would get the features that others of the workspace,
/// such as the examples, ask of them and of their dependencies.
fn without_features() -> Result<(), Failed> {
    LIBRARIES.iter().try_for_each(|library| {
        let check = format!("check --locked --package {library} --lib --no-default-features");
        Step::cargo("no features", &check).run()
    })
}

/// Licences, sources and duplicates of what we depend on.
///
/// Advisories need the network and change without us: a check of its own, not a gate.
fn dependencies() -> Result<(), Failed> {
    if !has_cargo_deny() && env::var_os("CI").is_some() {
        // Two minutes on two cores, once for each machine.
        let install = Step::cargo("cargo-deny", "install --locked --quiet cargo-deny@0.20.2");
        if let Err(Failed(message)) = install.run() {
            eprintln!("{message}");
        }
    }
    if has_cargo_deny() {
        Step::cargo(
            "dependencies",
            "deny --all-features check bans licenses sources",
        )
        .run()
    } else {
        eprintln!(
            "== dependencies: NOT CHECKED, cargo-deny is missing; type: cargo install --locked cargo-deny"
        );
        Ok(())
    }
}

/// Has Prometheus itself read the alerts, and try each.
fn alerts() -> Result<(), Failed> {
    let version = Command::new("promtool").arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        let rules = "test rules docker/prometheus/alerts_test.yml";
        Step::program("alerts", "promtool", rules).run()
    } else {
        eprintln!("== alerts: NOT CHECKED, promtool is missing; it comes with Prometheus");
        Ok(())
    }
}

fn has_cargo_deny() -> bool {
    // Asked of cargo, which also looks where it installs programs, on PATH or not.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let version = Command::new(cargo)
        .args(["deny", "--version"])
        .stdin(Stdio::null())
        .output();
    version.is_ok_and(|output| output.status.success())
}

const LINTS: &str = "clippy --locked --workspace --all-targets --all-features -- -D warnings";

const DOCUMENTATION: &str = "doc --locked --workspace --no-deps --all-features";

const LIBRARIES: [&str; 5] = [
    "redlock-proto",
    "redlock-core",
    "redlock-tower",
    "redlock-cron",
    "redlock-sandbox",
];
