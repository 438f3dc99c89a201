//! The client measured beside others, against its goals.
//!
//! Everything is a ratio, measured side by side in one run: figures of different runs, or machines, are not
//! comparable.
//! Each *contender* is a client in a process of its own: this program again, started as `contender CLIENT NODES…`.
//! The *peers* are other clients; *raw* is a loop of ours that does the least a client can do.
//! A *row* is a workload; `goals.rs` has what is to be reached in each.

mod contender;
mod failed;
mod goals;
mod meter;
mod report;
mod rows;
mod site;
mod statistics;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::{
    failed::{Failed, Result},
    report::Report,
    rows::{Bench, Scale},
    site::{Machine, Program},
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["contender", client, ..] => contender::serve(client, &arguments[2..]),
        _ => run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(message)) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<()> {
    let this = env::current_exe()?;
    let program = |client: &str| Program {
        name: client.to_owned(),
        client: client.to_owned(),
        path: this.clone(),
    };
    let mut programs: Vec<_> = ["raw", "redis-rs", "rslock", "redlock", "ours"]
        .map(program)
        .into();
    let mut scale = Scale::WHOLE;
    let mut names = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => scale = Scale::QUICK,
            "--beside" => {
                let beside = arguments.next().unwrap_or_default();
                let beside = beside.split_once('=');
                let (name, path) = beside.ok_or_else(|| Failed(USAGE.to_owned()))?;
                programs.push(Program {
                    name: name.to_owned(),
                    client: "ours".to_owned(),
                    path: path.into(),
                });
            }
            option if option.starts_with('-') => return Err(Failed(USAGE.to_owned())),
            _ => names.push(argument),
        }
    }
    let mut bench = Bench {
        scale,
        programs,
        report: Report::default(),
    };
    let machine = Machine::now();
    eprintln!("{} cores, load {}", machine.cores, machine.load());
    for row in rows::named(&names)? {
        (row.measure)(&mut bench)?;
        bench.report.end(row.name);
    }
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let results = folder.join("results.json");
    fs::write(&results, bench.report.json()?)?;
    for (name, picture) in bench.report.pictures() {
        fs::write(folder.join(name), picture)?;
    }
    eprintln!("\nload {}; {}", Machine::now().load(), results.display());
    let missed = bench.report.missed();
    if missed.is_empty() {
        return Ok(());
    }
    let missed: Vec<_> = missed
        .iter()
        .map(|goal| format!("{} {}", goal.row, goal.name()))
        .collect();
    Err(Failed(format!(
        "goals missed: {}\n  {}",
        missed.len(),
        missed.join("\n  ")
    )))
}

/// The folder for results, in cargo's for what it builds.
fn folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // Cargo says where this crate is when it runs it; a path from build time would be wrong after a move.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = here.as_deref().and_then(|here| here.ancestors().nth(2));
    let target = target.unwrap_or_else(|| root.unwrap_or_else(|| Path::new(".")).join("target"));
    target.join("bench")
}

const USAGE: &str = "\
usage: cargo xtask bench [--quick] [--beside NAME=PROGRAM] [ROWS]

  --quick                a first look, in three minutes
  --beside NAME=PROGRAM  measures the client of another tree too: PROGRAM is its redlock-bench
  ROWS                   only these, such as: P1 P2";
