//! `cargo xtask docker`: the files of `docker/`, each read by the program that it is for.

mod dashboard;
mod manifests;
mod prometheus;
mod queries;
mod scripts;
mod units;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    install,
    step::{Failed, root, target},
    unchecked::{Unchecked, is_ci},
};

/// Reads all of them, the slowest last.
pub(crate) fn run(unchecked: &mut Unchecked) -> Result<(), Failed> {
    scripts::check(unchecked)?;
    units::check(unchecked)?;
    manifests::check(unchecked)?;
    prometheus::check(unchecked)?;
    dashboard::check(unchecked)?;
    queries::check(unchecked)
}

/// The same as the whole of a run, whose last line says what could not be checked here.
pub(crate) fn alone() -> Result<(), Failed> {
    let mut unchecked = Unchecked::default();
    run(&mut unchecked)?;
    eprintln!("{unchecked}");
    Ok(())
}

/// A program that reads such files, and Debian's package that has it.
#[derive(Clone, Copy, Debug)]
struct Tool {
    program: &'static str,
    package: &'static str,
}

impl Tool {
    /// Returns whether the program is there; with `CI` set, it is installed first.
    ///
    /// # Errors
    ///
    /// The program is missing, and `CI` is set.
    fn is_there(self, step: &'static str, unchecked: &mut Unchecked) -> Result<bool, Failed> {
        let Self { program, package } = self;
        if !answers(program) && is_ci() {
            install::debian(step, &[package]);
        }
        if answers(program) {
            return Ok(true);
        }
        let why = format!("{program} is missing; Debian's package {package} has it");
        unchecked.missing(step, &why, is_ci())?;
        Ok(false)
    }
}

/// Returns whether a program is there and says its version.
fn answers(program: impl AsRef<Path>) -> bool {
    let version = Command::new(program.as_ref())
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    version.is_ok_and(|output| output.status.success())
}

/// Returns a folder of this name for what a step makes, empty.
fn scratch(name: &str) -> Result<PathBuf, Failed> {
    let folder = target().join("docker").join(name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(&folder, &error));
        }
        _ => {}
    }
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    Ok(folder)
}

/// Returns the text of a file of the repository.
fn read(path: &str) -> Result<String, Failed> {
    let path = root().join(path);
    fs::read_to_string(&path).map_err(|error| failed(&path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    fs::write(path, text).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

/// What runs all of it, of which some is made by an earlier step.
const ALONE: &str = "cargo xtask docker";
