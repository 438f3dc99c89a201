//! `cargo xtask ci`: what a change must pass, the quick checks first.

use std::{
    env,
    process::{Command, Stdio},
};

use crate::{
    features, install, modules, published,
    step::{Failed, Step},
    test,
};

/// Runs every step, and stops at the first that fails.
pub(crate) fn run() -> Result<(), Failed> {
    Step::cargo("format", "fmt --all --check").run()?;
    modules::run()?;
    Step::cargo("lints", LINTS).run()?;
    features::run()?;
    published::package()?;
    oldest_release()?;
    Step::cargo("documentation", DOCUMENTATION)
        .variable("RUSTDOCFLAGS", "-D warnings")
        .alone(&format!("RUSTDOCFLAGS='-D warnings' cargo {DOCUMENTATION}"))
        .run()?;
    dependencies()?;
    prometheus()?;
    manifests()?;
    test::run(&[])
}

/// Compiles the published crates with the oldest release that they promise to build with.
///
/// Clippy knows of each function when it came, and is among the lints; the language and dependencies need the compiler.
fn oldest_release() -> Result<(), Failed> {
    let release = published::oldest_release()?;
    let asked = Command::new("rustup")
        .args(["run", &release, "rustc", "--version"])
        .stdin(Stdio::null())
        .output();
    if !asked.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "== oldest release: NOT CHECKED, Rust {release} is missing; type: rustup toolchain install {release} --profile minimal"
        );
        return Ok(());
    }
    let packages = published::packages()?;
    let check = format!("run {release} cargo check --locked --all-features {packages}");
    Step::program("oldest release", "rustup", &check).run()
}

/// Licences, sources and duplicates of what we depend on.
///
/// Advisories need the network and change without us: a check of its own, not a gate.
fn dependencies() -> Result<(), Failed> {
    if !has_cargo_deny() && is_ci() {
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

/// Has Prometheus itself read its configuration and the alerts, and try each.
fn prometheus() -> Result<(), Failed> {
    if !answers("promtool") && is_ci() {
        install::debian("prometheus", "prometheus");
    }
    if !answers("promtool") {
        return prometheus_unchecked(is_ci());
    }
    let configuration = "check config docker/prometheus/prometheus.yml";
    Step::program("prometheus", "promtool", configuration).run()?;
    let rules = "test rules docker/prometheus/alerts_test.yml";
    Step::program("alerts", "promtool", rules).run()
}

/// Compares the manifests with the schema of Kubernetes, which allows no field that it does not have.
fn manifests() -> Result<(), Failed> {
    if !answers("kubernetes-validate") {
        eprintln!(
            "== manifests: NOT CHECKED, kubernetes-validate is missing; type: pip install kubernetes-validate"
        );
        return Ok(());
    }
    let manifests = "--strict docker/kubernetes/redlock.yaml";
    Step::program("manifests", "kubernetes-validate", manifests).run()
}

/// Returns whether a program is there and says its version.
fn answers(program: &str) -> bool {
    let version = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    version.is_ok_and(|output| output.status.success())
}

/// Says that nothing tries the alerts, which is an error where nobody reads what a step says.
fn prometheus_unchecked(is_ci: bool) -> Result<(), Failed> {
    let message = "== prometheus: NOT CHECKED, promtool is missing; it comes with Prometheus";
    if is_ci {
        return Err(Failed(message.to_owned()));
    }
    eprintln!("{message}");
    Ok(())
}

fn is_ci() -> bool {
    env::var_os("CI").is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_that_nobody_tried_pass_only_where_somebody_reads_that() {
        assert!(prometheus_unchecked(false).is_ok());
        let Failed(message) = prometheus_unchecked(true).unwrap_err();
        assert!(message.contains("promtool is missing"), "{message}");
    }
}
