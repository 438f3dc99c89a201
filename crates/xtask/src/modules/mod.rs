//! `cargo xtask modules`: the modules of each crate have floors, and no circles.
//!
//! Module `a` *uses* `b` where a path or an import in `a`, or in a module below it, leads to an item that is written
//! down in `b` or below it.
//! Re-exports are followed to the module that has the item, so a `pub use` in `lib.rs` or in a `mod.rs` hides nothing.
//!
//! The modules of one folder, which are the children of one module, form a circle if one of them uses another, that
//! uses a third, and so on, back to the first.
//! Each folder is looked at by itself: a circle deep in a crate counts as much as one below `lib.rs`.
//! So does a chain: modules of one folder of which each uses the next stand on as many levels.
//!
//! What does not count:
//!
//! - a child that uses an item of its parent or of a module further up, and a parent that uses its children: a struct in
//!   `mod.rs` whose `impl` blocks are in the files beside it is one module in several files;
//! - a method that is called on a value whose type is never named;
//! - whatever is compiled for tests only (`#[cfg(test)]`), and links in documentation;
//! - other crates, among which Cargo allows no circle.

mod circle;
mod names;
mod source;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::{
    circle::{circles, longest_chain},
    source::Source,
};
use crate::step::{Failed, now, root};

/// The most levels on which the modules of one folder may stand.
const MOST_LEVELS: usize = 8;

/// Reads every crate of the workspace, and prints each circle.
///
/// # Errors
///
/// A crate has a circle or too many levels, or cannot be read.
pub(crate) fn run() -> Result<(), Failed> {
    eprintln!("== modules: cargo xtask modules");
    let started = now();
    let root = root();
    let mut modules = 0;
    let mut wrong = Vec::new();
    let mut levels = Vec::new();
    for package in packages(&root)? {
        let mut of_package = 0;
        for target in targets(&root.join(&package)) {
            let source = Source::read(&target)?;
            modules += source.len();
            for circle in circles(&source) {
                of_package += 1;
                let target = target.strip_prefix(&root).unwrap_or(&target);
                eprint!("{}: {circle}", target.display());
            }
            let chain = if of_package == 0 {
                longest_chain(&source)
            } else {
                Vec::new()
            };
            if chain.len() > MOST_LEVELS {
                let count = chain.len();
                wrong.push(format!(
                    "{package} has {count} levels: {}",
                    chain.join(" -> ")
                ));
            } else if chain.len() > levels.len() {
                levels = chain;
            }
        }
        if of_package > 0 {
            wrong.push(format!("{package} has {of_package} circles"));
        }
    }
    if !wrong.is_empty() {
        return Err(Failed(format!(
            "== modules failed: {}; to look again: cargo xtask modules",
            wrong.join("; ")
        )));
    }
    eprintln!(
        "== modules: fine after {:.1} s: {modules} modules, no circle, at most {} levels ({})",
        started.elapsed().as_secs_f64(),
        levels.len(),
        levels.join(" -> "),
    );
    Ok(())
}

/// The folders of the workspace's packages, from its root, as its `Cargo.toml` names them.
fn packages(root: &Path) -> Result<Vec<String>, Failed> {
    let manifest = root.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)
        .map_err(|error| Failed(format!("{}: {error}", manifest.display())))?;
    let members = text
        .split_once("\nmembers = [")
        .and_then(|(_, rest)| rest.split_once("\n]"));
    let (members, _) =
        members.ok_or_else(|| Failed(format!("{} has no members", manifest.display())))?;
    let lines = members.lines().filter_map(|line| line.split('"').nth(1));
    Ok(lines.map(str::to_owned).collect())
}

/// The files at which the crates of a package begin: library, programs and tests.
fn targets(package: &Path) -> Vec<PathBuf> {
    let mut targets = vec![package.join("src/lib.rs"), package.join("src/main.rs")];
    for folder in ["src/bin", "tests", "examples", "benches"] {
        let entries = fs::read_dir(package.join(folder)).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|end| end == "rs") {
                targets.push(path);
            } else {
                targets.push(path.join("main.rs"));
            }
        }
    }
    targets.retain(|target| target.is_file());
    targets.sort();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_the_workspace_is_read() {
        let root = root();
        let packages = packages(&root).unwrap();
        assert!(
            packages.contains(&"crates/xtask".to_owned()),
            "{packages:?}"
        );
        for package in packages {
            assert!(!targets(&root.join(&package)).is_empty(), "{package}");
        }
    }
}
