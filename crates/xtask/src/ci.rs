//! `cargo xtask ci`: what a change must pass, the quick checks first.

use std::{
    env,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    docker, features, modules, published,
    step::{Failed, Step},
    test,
    unchecked::{Unchecked, is_ci},
    verify,
};

/// Runs every step, the quick ones first, and stops at the first that fails; its last line says what could not be checked
/// here.
///
/// The searches take what the later steps leave of the processor.
pub(crate) fn run() -> Result<(), Failed> {
    let mut unchecked = Unchecked::default();
    Step::cargo("format", "fmt --all --check").run()?;
    modules::run()?;
    Step::cargo("lints", LINTS).run()?;
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let searches = scope.spawn(|| verify::search_aside(&has_failed));
        let checked = after_the_lints(&mut unchecked);
        if let Err(Failed(message)) = &checked {
            eprintln!("{message}\n== the searches end after this one");
            has_failed.store(true, Ordering::Relaxed);
        }
        let searched = searches.join().expect("no search panics");
        checked.and(searched)
    })?;
    eprintln!("{unchecked}");
    Ok(())
}

fn after_the_lints(unchecked: &mut Unchecked) -> Result<(), Failed> {
    features::run()?;
    published::package()?;
    oldest_release(unchecked)?;
    other_systems(unchecked)?;
    Step::cargo("documentation", DOCUMENTATION)
        .variable("RUSTDOCFLAGS", "-D warnings")
        .alone(&format!("RUSTDOCFLAGS='-D warnings' cargo {DOCUMENTATION}"))
        .run()?;
    dependencies(unchecked)?;
    docker::run(unchecked)?;
    test::run(&[])?;
    verify::compare()
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
