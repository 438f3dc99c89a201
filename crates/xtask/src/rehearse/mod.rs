//! `cargo xtask rehearse`: the packages of a release, and all that comes after a release.
//!
//! All crates are packaged in two versions; a newcomer builds the README's service from the packages, and runs its tests;
//! and a fleet under load is upgraded from the first version to the second.
//! At last, replicas with jobs go through faults for ten minutes.

mod fleet;
mod newcomer;
mod versions;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};

use self::fleet::{Program, Setting, Tally};
use crate::{
    published, server,
    step::{Failed, Step, target},
};

/// Packages the sources of `revision`, and those of the present commit as the version after it, and uses both.
///
/// # Errors
///
/// A step fails, or the upgrade costs an acquire or an overlap.
pub(crate) fn run(revision: &str) -> Result<(), Failed> {
    let binary = server::ensure()?;
    let folder = target().join("rehearsal");
    let rehearsal = Rehearsal {
        build: folder.join("build"),
        folder,
    };
    rehearsal.clear()?;
    let sources = |name: &str| rehearsal.folder.join(name).join("sources");
    let first = versions::copy(revision, &sources("first"))?;
    let mut second = versions::copy("HEAD", &sources("second"))?;
    if second == first {
        second = versions::next(&first)?;
    }
    for (name, version) in [("first", &first), ("second", &second)] {
        versions::rename(&sources(name), version)?;
        // As the lock file of a release is: with the new version of our crates, and no other change.
        let update = "update --workspace --offline --quiet";
        let lock = rehearsal.cargo("lock file", update, &sources(name));
        lock.run()?;
        let packages = rehearsal.folder.join(name).join("packages");
        let packages = published::unpack(&sources(name), &rehearsal.build, &packages)?;
        rehearsal.install(name, &packages)?;
        rehearsal.newcomer(name, version, &packages)?;
    }
    let tally = rehearsal.upgrade(&binary, [&first, &second])?;
    if !tally.is_clean() {
        return Err(Failed(format!(
            "== upgrade from {first} to {second}: {tally}"
        )));
    }
    eprintln!("== upgrade from {first} to {second}: fine: {tally}");
    Step::cargo("jobs", JOBS)
        .alone(&format!("{JOBS_SECONDS}=600 cargo {JOBS}"))
        .variable(SERVER_VARIABLE, binary.path())
        .variable(JOBS_SECONDS, "600")
        .run()
}

/// The folders of a rehearsal.
struct Rehearsal {
    /// Where all of it is.
    folder: PathBuf,
    /// Where cargo builds.
    build: PathBuf,
}

impl Rehearsal {
    /// Removes what an earlier rehearsal left, except what cargo has built.
    fn clear(&self) -> Result<(), Failed> {
        for name in ["first", "second", "orders"] {
            let folder = self.folder.join(name);
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Failed(format!("{}: {error}", folder.display())));
                }
                _ => {}
            }
        }
        let orders = self.folder.join("orders");
        fs::create_dir_all(&orders)
            .map_err(|error| Failed(format!("{}: {error}", orders.display())))
    }

    /// Installs the command from its package.
    fn install(&self, name: &str, packages: &[(String, PathBuf)]) -> Result<(), Failed> {
        let mut packages = packages.iter();
        let command = packages.find(|(name, _)| name == "redlock-cli");
        let (_, command) = command.ok_or_else(|| Failed("there is no command".to_owned()))?;
        let install = "install --locked --debug --quiet --path";
        self.cargo("installation of the command", install, &self.folder)
            .arguments(&[command.as_path(), Path::new("--root")])
            .arguments(&[self.folder.join(name)])
            .run()
    }

    /// Builds the project of a newcomer, runs its tests, and asks its service for something.
    fn newcomer(
        &self,
        name: &str,
        version: &str,
        packages: &[(String, PathBuf)],
    ) -> Result<(), Failed> {
        let folder = self.folder.join(name);
        let project = folder.join("project");
        newcomer::write(&project, &folder.join("sources"), version, packages)?;
        self.cargo("newcomer's tests", "test --quiet", &project)
            .run()?;
        self.cargo("newcomer's service", "build --quiet", &project)
            .run()?;
        for program in ["newcomer", "replica"] {
            let built = self.build.join("debug").join(program);
            let copied = fs::copy(&built, folder.join(program));
            copied.map_err(|error| Failed(format!("{}: {error}", built.display())))?;
        }
        let answer = fleet::serve_alone(&folder.join("bin/redlock"), &folder.join("newcomer"));
        match answer {
            Ok(answer) if answer.contains(" is paid, with ") => {
                eprintln!("== newcomer's service on {version}: fine");
                Ok(())
            }
            Ok(answer) => Err(Failed(format!("the newcomer's service answers: {answer}"))),
            Err(error) => Err(Failed(format!("the newcomer's service: {error}"))),
        }
    }

    /// Upgrades a fleet, on new servers, for which the first version's command vouches and which the second's examines.
    fn upgrade(&self, binary: &ServerBinary, versions: [&str; 2]) -> Result<Tally, Failed> {
        let servers = ServerSet::start(binary, NODES, &ServerOptions::default());
        let servers = servers.map_err(|error| Failed(error.to_string()))?;
        let nodes = servers.urls().join(",");
        let command = |step: &'static str, name: &str, arguments: &str| {
            let program = self.folder.join(name).join("bin/redlock");
            let step = Step::program(step, &program.to_string_lossy(), arguments);
            step.variable("REDLOCK_NODES", &nodes).run()
        };
        command("first command", "first", "bless --yes")?;
        let [first, second] =
            [("first", versions[0]), ("second", versions[1])].map(|(name, version)| Program {
                path: self.folder.join(name).join("replica"),
                version: version.to_owned(),
            });
        let setting = Setting {
            nodes: nodes.clone(),
            orders: self.folder.join("orders"),
        };
        let tally = fleet::upgrade(&setting, &first, &second, ORDERS_BETWEEN);
        let tally = tally.map_err(|error| Failed(format!("the fleet: {error}")))?;
        command("second command", "second", "doctor")?;
        Ok(tally)
    }

    fn cargo(&self, name: &'static str, arguments: &str, folder: &Path) -> Step {
        let step = Step::cargo(name, arguments).within(folder);
        step.variable("CARGO_TARGET_DIR", &self.build)
    }
}

const NODES: usize = 3;

/// The test of replicas with jobs, and the variable that says for how long it makes faults.
const JOBS: &str = "test --locked -p redlock-tests --test it -- jobs_ends --nocapture";
const JOBS_SECONDS: &str = "REDLOCK_JOBS_SECONDS";

/// How many orders the fleet pays at the least before, between and after the replacements of its replicas.
const ORDERS_BETWEEN: u64 = 2_500;
