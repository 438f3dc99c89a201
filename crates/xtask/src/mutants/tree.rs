//! The copy of the sources that mutants are put into.

use std::{
    env, fmt,
    fs::{self, File, TryLockError},
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    mutant::{Catch, Mutant},
    patch::Sources,
};
use crate::{
    server,
    step::{Failed, root, target},
};
use redlock_sandbox::SERVER_VARIABLE;

/// A copy of every file that is under version control, with a build folder of its own.
#[derive(Debug)]
pub(super) struct Tree {
    sources: PathBuf,
    texts: Sources,
    build: PathBuf,
    said: PathBuf,
    server: PathBuf,
    /// Locked for as long as the copy is used.
    _lock: File,
}

/// What became of a check.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It passed.
    Passed,
    /// It failed, as it should with a mutant.
    Caught {
        /// The invariant or the test.
        by: String,
        /// How many seeds or states it took, if that is what was counted.
        needed: String,
        /// All that was printed.
        said: String,
    },
    /// The mutant does not compile.
    Broken,
}

impl Outcome {
    /// An error, unless it passed.
    pub(super) fn expect_passed(self, what: impl fmt::Display) -> Result<(), Failed> {
        let said = match self {
            Self::Passed => return Ok(()),
            Self::Caught { said, .. } => said,
            Self::Broken => "it does not compile".to_owned(),
        };
        Err(Failed(format!(
            "{said}\nwithout any mutant, {what} does not pass"
        )))
    }
}

impl Tree {
    /// Copies the sources as they are now, changes that are not committed included.
    pub(super) fn copy() -> Result<Self, Failed> {
        let target = target().join("mutants");
        let lock = lock(&target)?;
        let sources = target.join("sources");
        if sources.exists() {
            fs::remove_dir_all(&sources).map_err(|error| failed(&sources, &error))?;
        }
        for file in listed()? {
            copy(&root().join(&file), &sources.join(&file))?;
        }
        let texts = texts(&sources)?;
        let said = target.join("said");
        if said.exists() {
            fs::remove_dir_all(&said).map_err(|error| failed(&said, &error))?;
        }
        Ok(Self {
            sources,
            texts,
            build: target.join("build"),
            said,
            server: server::ensure()?.path().to_path_buf(),
            _lock: lock,
        })
    }

    /// The folder of what was printed for each mutant.
    pub(super) fn said(&self) -> &Path {
        &self.said
    }

    /// Writes the output of a check that caught a mutant to a file, so that a reader can check the reason.
    ///
    /// The output of each check of a mutant follows that of the check before it.
    pub(super) fn keep(&self, name: &str, outcome: &Outcome) -> Result<(), Failed> {
        let path = self.said.join(format!("{name}.txt"));
        let folder = path.parent().unwrap_or(&self.said);
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let said = match outcome {
            Outcome::Caught { said, .. } => said,
            Outcome::Passed | Outcome::Broken => "",
        };
        let file = File::options().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(said.as_bytes()));
        written.map_err(|error| failed(&path, &error))
    }

    /// Puts `mutant` in, does `work`, and takes it out again.
    pub(super) fn with<T>(
        &self,
        mutant: &Mutant,
        work: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let files = self.mutated(mutant)?;
        for (path, _, mutated) in &files {
            fs::write(path, mutated).map_err(|error| failed(path, &error))?;
        }
        let outcome = work();
        for (path, source, _) in &files {
            fs::write(path, source).map_err(|error| failed(path, &error))?;
        }
        outcome
    }

    /// An error if a line that `mutant` changes is not there.
    pub(super) fn expect_fit(&self, mutant: &Mutant) -> Result<(), Failed> {
        self.mutated(mutant).map(drop)
    }

    /// The files of a mutant, and what is in each without and with the mutant.
    fn mutated(&self, mutant: &Mutant) -> Result<Vec<(PathBuf, &str, String)>, Failed> {
        let files = mutant.patch.files.iter().map(|file| {
            let applied = file.apply_to(&self.texts);
            let (path, source, mutated) =
                applied.map_err(|error| Failed(format!("mutant {}: {error}", mutant.name)))?;
            Ok((self.sources.join(path), source, mutated))
        });
        files.collect()
    }

    /// Runs what should catch a mutant.
    pub(super) fn run(&self, catch: &Catch) -> Result<Outcome, Failed> {
        match catch {
            Catch::Simulation { seeds, plan } => {
                let seeds = seeds.to_string();
                self.search("redlock-sim", &["--seeds", &seeds, "--plan", plan])
            }
            Catch::Test {
                package,
                target,
                filters,
            } => self.test(package, target, filters),
        }
    }

    /// Explores a small world of the model, with one of its mutations.
    pub(super) fn explore(&self, world: &str, mutation: Option<&str>) -> Result<Outcome, Failed> {
        let mut arguments: Vec<&str> = world.split(' ').collect();
        arguments.extend(mutation.iter().flat_map(|name| ["--mutation", name]));
        self.search("redlock-model", &arguments)
    }

    /// A search that exits with 1 and says what it has found, and how much that took.
    fn search(&self, program: &str, arguments: &[&str]) -> Result<Outcome, Failed> {
        let mut build = self.cargo(&["build", "--quiet", "--profile", PROFILE, "-p", program]);
        let build = build.output();
        let build = build.map_err(|error| Failed(format!("cargo build: {error}")))?;
        if !build.status.success() {
            return Ok(Outcome::Broken);
        }
        let output = Command::new(self.build.join(PROFILE).join(program))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Failed(format!("{program}: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => Ok(Outcome::Passed),
            Some(1) => Ok(found(&said)),
            _ => Err(Failed(format!(
                "{program} {arguments:?} ended oddly:\n{said}"
            ))),
        }
    }

    fn test(&self, package: &str, target: &str, filters: &[String]) -> Result<Outcome, Failed> {
        let mut command = self.cargo(&["test", "--quiet", "--all-features", "-p", package]);
        command.args(target.split(' ')).arg("--").args(filters);
        let output = command.output();
        let output = output.map_err(|error| Failed(format!("cargo test: {error}")))?;
        if output.status.success() {
            return Ok(Outcome::Passed);
        }
        // Cargo says so after it has run a test.
        let error = String::from_utf8_lossy(&output.stderr);
        if !error
            .lines()
            .any(|line| line.starts_with("error: test failed"))
        {
            return Ok(Outcome::Broken);
        }
        let said = String::from_utf8_lossy(&output.stdout);
        // What each failure printed comes first, and the names once more at the end.
        let (_, names) = said.rsplit_once("failures:").unwrap_or_default();
        let first = names.lines().find_map(|line| line.strip_prefix("    "));
        Ok(Outcome::Caught {
            by: first.unwrap_or(&filters.join(" ")).to_owned(),
            needed: String::new(),
            said: said.into_owned(),
        })
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(arguments)
            .current_dir(&self.sources)
            .env("CARGO_TARGET_DIR", &self.build)
            .env(SERVER_VARIABLE, &self.server)
            .env_remove("CARGO_MANIFEST_DIR")
            .stdin(Stdio::null());
        command
    }
}

/// Returns every file that is under version control, or is to be, from the root of the repository.
fn listed() -> Result<Vec<String>, Failed> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ])
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failed(format!("git: {error}")))?;
    if !listed.status.success() {
        return Err(Failed("git does not list the sources".to_owned()));
    }
    let files = String::from_utf8_lossy(&listed.stdout);
    let files = files.split('\0').filter(|file| !file.is_empty());
    Ok(files.map(str::to_owned).collect())
}

/// Reads the texts below `folder` that a mutant may change: those under version control, without the mutants.
pub(super) fn texts(folder: &Path) -> Result<Sources, Failed> {
    let mut texts = Sources::new();
    for file in listed()? {
        let path = folder.join(&file);
        if !file.starts_with("crates/xtask/mutants/")
            && path.is_file()
            && let Ok(text) = fs::read_to_string(path)
        {
            texts.insert(file, text);
        }
    }
    Ok(texts)
}

/// What a search says: the simulation in lines with a name, the model in a table and the steps of a breach.
fn found(said: &str) -> Outcome {
    let after = |word: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_default().trim().to_owned()
    };
    match said.strip_prefix("violated") {
        Some(model) => {
            let states = model.split_whitespace().next().unwrap_or_default();
            let trace = model.split("\n\n").next().unwrap_or_default();
            let last = trace.lines().last().unwrap_or_default();
            Outcome::Caught {
                by: format!("model: {}", last.trim()),
                needed: format!("{states} states"),
                said: said.to_owned(),
            }
        }
        None => Outcome::Caught {
            by: format!("simulation: {}", after("violation:")),
            needed: after("needed:"),
            said: said.to_owned(),
        },
    }
}

/// Locks a folder, in which one run at a time changes the sources.
fn lock(folder: &Path) -> Result<File, Failed> {
    let path = folder.join("lock");
    let opened = fs::create_dir_all(folder).and_then(|()| File::create(&path));
    let file = opened.map_err(|error| failed(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failed(format!(
            "another run changes the sources in {}; wait for it, or choose another folder with CARGO_TARGET_DIR",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
    }
}

/// Copies a file, or a link as a link, so that what it leads to is in the copy too.
fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    // A file that was deleted is still listed.
    if !from.is_file() && !from.is_symlink() {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let copied = match fs::read_link(from) {
        Ok(target) => symlink(target, to),
        Err(_) => fs::copy(from, to).map(drop),
    };
    copied.map_err(|error| failed(from, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

/// Of the root's `Cargo.toml`: quick to build again after an edit.
const PROFILE: &str = "mutants";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_do_not_change_the_same_sources() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let Failed(message) = lock(folder.path()).unwrap_err();
        assert!(message.contains("CARGO_TARGET_DIR"), "{message}");
        drop(first);
        assert!(lock(folder.path()).is_ok());
    }

    #[test]
    fn a_link_to_a_folder_leads_to_the_copy_of_that_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("shared")).unwrap();
        fs::create_dir_all(from.join("crate")).unwrap();
        fs::write(from.join("shared/file"), "as it was").unwrap();
        symlink("../shared", from.join("crate/link")).unwrap();
        // As they are listed: a link to a folder is one name.
        for file in ["crate/link", "shared/file", "deleted"] {
            copy(&from.join(file), &to.join(file)).unwrap();
        }
        fs::write(to.join("shared/file"), "changed").unwrap();
        let through_link = fs::read_to_string(to.join("crate/link/file")).unwrap();
        assert_eq!(through_link, "changed");
        assert!(!to.join("deleted").exists());
    }
}
