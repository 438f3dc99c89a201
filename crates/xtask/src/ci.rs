//! `cargo xtask ci`: what a change must pass, the quick checks first.

use std::{
    env, fmt,
    process::{Command, Stdio},
};

use crate::{
    features, install, modules, published,
    step::{Failed, Step},
    test,
};

/// Runs every step, and stops at the first that fails; its last line says what could not be checked here.
pub(crate) fn run() -> Result<(), Failed> {
    let mut unchecked = Unchecked::default();
    Step::cargo("format", "fmt --all --check").run()?;
    modules::run()?;
    Step::cargo("lints", LINTS).run()?;
    features::run()?;
    published::package()?;
    oldest_release(&mut unchecked)?;
    other_systems(&mut unchecked)?;
    Step::cargo("documentation", DOCUMENTATION)
        .variable("RUSTDOCFLAGS", "-D warnings")
        .alone(&format!("RUSTDOCFLAGS='-D warnings' cargo {DOCUMENTATION}"))
        .run()?;
    dependencies(&mut unchecked)?;
    prometheus(&mut unchecked, is_ci())?;
    manifests(&mut unchecked)?;
    test::run(&[])?;
    eprintln!("{unchecked}");
    Ok(())
}

/// The steps for which something is missing that not every machine can have.
#[derive(Debug, Default)]
struct Unchecked(Vec<&'static str>);

impl Unchecked {
    /// Says at once why a step is not run, and remembers it.
    fn note(&mut self, step: &'static str, why: &str) {
        eprintln!("== {step}: NOT CHECKED, {why}");
        self.0.push(step);
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

/// Compiles the published crates with the oldest release that they promise to build with.
///
/// Clippy knows of each function when it came, and is among the lints; the language and dependencies need the compiler.
fn oldest_release(unchecked: &mut Unchecked) -> Result<(), Failed> {
    let release = published::oldest_release()?;
    let asked = Command::new("rustup")
        .args(["run", &release, "rustc", "--version"])
        .stdin(Stdio::null())
        .output();
    if !asked.is_ok_and(|output| output.status.success()) {
        let why = format!(
            "Rust {release} is missing; type: rustup toolchain install {release} --profile minimal"
        );
        unchecked.note("oldest release", &why);
        return Ok(());
    }
    let packages = published::packages()?;
    let check = format!("run {release} cargo check --locked --all-features {packages}");
    Step::program("oldest release", "rustup", &check).run()
}

/// Compiles the published crates for a system that is not Linux, where the standard library for it is.
///
/// Nothing is linked or run; what is there on Linux alone is noticed.
fn other_systems(unchecked: &mut Unchecked) -> Result<(), Failed> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .stdin(Stdio::null())
        .output();
    let has_it = installed.is_ok_and(|output| {
        let targets = String::from_utf8_lossy(&output.stdout);
        targets.lines().any(|target| target == OTHER_SYSTEM)
    });
    if !has_it {
        let why =
            format!("its standard library is missing; type: rustup target add {OTHER_SYSTEM}");
        unchecked.note("other systems", &why);
        return Ok(());
    }
    // Without TLS, whose sources ask for a compiler of C that knows the other system.
    let check = format!(
        "check --locked --no-default-features -p redlock-cli -p redlock-tower -p redlock-sim --target {OTHER_SYSTEM}"
    );
    Step::cargo("other systems", &check).run()
}

/// Licences, sources and duplicates of what we depend on.
///
/// Advisories need the network and change without us: a check of its own, not a gate.
fn dependencies(unchecked: &mut Unchecked) -> Result<(), Failed> {
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
        let why = "cargo-deny is missing; type: cargo install --locked cargo-deny";
        unchecked.note("dependencies", why);
        Ok(())
    }
}

/// Has Prometheus itself read its configuration and the alerts, and try each.
///
/// Where nobody reads what a step says, it is an error if nothing can.
fn prometheus(unchecked: &mut Unchecked, is_ci: bool) -> Result<(), Failed> {
    if !answers("promtool") && is_ci {
        install::debian("prometheus", "prometheus");
    }
    if !answers("promtool") {
        return prometheus_unchecked(unchecked, is_ci);
    }
    let configuration = "check config docker/prometheus/prometheus.yml";
    Step::program("prometheus", "promtool", configuration).run()?;
    let rules = "test rules docker/prometheus/alerts_test.yml";
    Step::program("alerts", "promtool", rules).run()
}

/// Compares the manifests with the schema of Kubernetes, which allows no field that it does not have.
fn manifests(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !answers("kubernetes-validate") {
        let why = "kubernetes-validate is missing; type: pip install kubernetes-validate";
        unchecked.note("manifests", why);
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
fn prometheus_unchecked(unchecked: &mut Unchecked, is_ci: bool) -> Result<(), Failed> {
    let why = "promtool is missing; it comes with Prometheus";
    if is_ci {
        return Err(Failed(format!("== prometheus: NOT CHECKED, {why}")));
    }
    unchecked.note("prometheus", why);
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

/// A system that is not Linux.
const OTHER_SYSTEM: &str = "x86_64-apple-darwin";

const LINTS: &str = "clippy --locked --workspace --all-targets --all-features -- -D warnings";

const DOCUMENTATION: &str = "doc --locked --workspace --no-deps --all-features";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_that_nobody_tried_pass_only_where_somebody_reads_that() {
        let mut unchecked = Unchecked::default();
        assert!(prometheus_unchecked(&mut unchecked, false).is_ok());
        let Failed(message) = prometheus_unchecked(&mut unchecked, true).unwrap_err();
        assert!(message.contains("promtool is missing"), "{message}");
    }

    #[test]
    fn the_last_line_says_what_was_not_checked() {
        let mut unchecked = Unchecked::default();
        assert_eq!(unchecked.to_string(), "== all was checked");
        unchecked.note("manifests", "it is missing");
        assert!(prometheus_unchecked(&mut unchecked, false).is_ok());
        let said = unchecked.to_string();
        assert!(
            said.ends_with("NOT CHECKED, as said above: manifests, prometheus"),
            "{said}"
        );
    }
}
