//! The project's own commands: `cargo xtask <verb>`.

mod bench;
mod browser;
mod ci;
mod docker;
mod evidence;
mod features;
mod house;
mod install;
mod modules;
mod mutants;
mod programs;
mod published;
mod rehearse;
mod server;
mod slowest;
mod step;
mod test;
mod unchecked;
mod verify;

use std::{env, ffi::OsString, process::ExitCode};

use crate::step::Failed;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let verb = arguments.next().and_then(|verb| verb.into_string().ok());
    let rest: Vec<OsString> = arguments.collect();
    let outcome = match (verb.as_deref(), rest.is_empty()) {
        (Some("test"), _) => test::run(&rest),
        (Some("verify"), true) => verify::run(),
        (Some("ci"), true) => ci::run(),
        (Some("docker"), true) => docker::alone(),
        (Some("evidence"), true) => evidence::run(),
        (Some("features"), true) => features::run(),
        (Some("house"), true) => house::run(),
        (Some("modules"), true) => modules::run(),
        (Some("package"), true) => published::package(),
        (Some("rehearse"), _) if rest.len() < 2 => {
            let revision = rest
                .first()
                .map_or_else(|| "HEAD".into(), |it| it.to_string_lossy());
            rehearse::run(&revision)
        }
        (Some("bench"), _) => bench::run(&rest),
        (Some("mutants"), _) => {
            let names: Vec<_> = rest
                .iter()
                .map(|name| name.to_string_lossy().into())
                .collect();
            mutants::run(&names)
        }
        (Some("help" | "--help" | "-h"), true) => {
            eprint!("{USAGE}");
            Ok(())
        }
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(message)) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

const USAGE: &str = "\
usage: cargo xtask <verb>

  test [ARGUMENTS]  runs every test of the workspace, on real servers, in about 20 minutes with the first
                    build; without a server or a browser it calls apt-get, as root or by sudo, to
                    install them;
                    ARGUMENTS go to `cargo test`, such as: -p redlock-core -- quorum
  verify            searches for violations: the simulation, the exhaustive model, and nodes
                    beside their model; checks the compiler's messages for mistakes
  ci                all checks that a change must pass: format, modules, lints, features, packages,
                    documentation, dependencies, the files of docker/, tests and searches
  docker            checks the files of docker/ with systemd, Prometheus, and the schemas of Kubernetes
                    and Grafana
  evidence          prints which tests and mutants show each step of the safety argument,
                    and fails if a step has none
  features          checks each published library with every set of its features
  house             counts code, documentation, tests, files, types and options of the published crates
  modules           looks for circles among the modules of each crate
  package           makes the packages of the published crates, and compiles their contents
  rehearse [REVISION]
                    publishes all crates to a registry on this machine, those of REVISION (or of the last
                    commit) and those of the last commit as the next version; builds the README's service
                    from them and runs its tests; upgrades a fleet under load from one to the other
  mutants [NAMES]   puts known mistakes into a copy of the sources, one at a time, and runs the checks
                    that must fail; NAMES are parts of names, or of paths of changed files: protocol/,
                    no-drift, src/local/queue
  bench [ROWS]      measures the client beside others, and against its goals;
                    ROWS are some of its rows, such as: P1 P2; --quick is a first look
";
