//! `cargo xtask ci`: what a change must pass, the quick checks first.

use std::{
    env,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    docker, features, house, modules, published,
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
    house::run()?;
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
    Step::cargo("documentation", DOCUMENTATION)
        .variable("RUSTDOCFLAGS", "-D warnings")
        .alone(&format!("RUSTDOCFLAGS='-D warnings' cargo {DOCUMENTATION}"))
        .run()?;
    dependencies(unchecked)?;
    docker::run(unchecked)?;
    test::run(&[])?;
    verify::compare()
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

const LINTS: &str = "clippy --locked --workspace --all-targets --all-features -- -D warnings";

const DOCUMENTATION: &str = "doc --locked --workspace --no-deps --all-features";
