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
    report::{OURS, Report},
    rows::{Bench, Scale},
    site::{Machine, Program},
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["contender", client, ..] => contender::serve(client, &arguments[2..]),
        ["--publish", results] => publish(Path::new(results)),
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
    let (mut bench, names) = parse(arguments)?;
    let rows = rows::named(&names)?;
    let machine = Machine::now();
    eprintln!("{} cores, load {}", machine.cores, machine.load());
    let mut broken = Vec::new();
    for row in rows {
        if let Err(Failed(why)) = (row.measure)(&mut bench) {
            broken.push(format!("{} cannot be measured: {why}", row.name));
        }
        bench.report.end(row.name);
    }
    let folder = folder();
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("results.json"), bench.report.json()?)?;
    eprintln!("\nload {}; {}", Machine::now().load(), folder.display());
    let missed = bench.report.missed();
    if missed.is_empty() && broken.is_empty() {
        return Ok(());
    }
    let missed = missed.iter();
    let missed = missed.map(|goal| format!("{} {}", goal.row, goal.name()));
    let lines: Vec<_> = broken.into_iter().chain(missed).collect();
    let text = lines.join("\n  ");
    Err(Failed(format!("what is missed:\n  {text}")))
}

/// Writes the figures of an earlier run into the documents.
fn publish(results: &Path) -> Result<()> {
    let report = Report::of_json(&fs::read_to_string(results)?)?;
    report.publish(&root())
}

/// Reads the arguments: the scale, the programs to measure, and the names of rows.
fn parse(arguments: Vec<String>) -> Result<(Bench, Vec<String>)> {
    let this = env::current_exe()?;
    let program = |name: &str, client: &str, path: &Path| Program {
        name: name.to_owned(),
        client: client.to_owned(),
        path: path.to_owned(),
    };
    let clients = ["raw", "redis-rs", "rslock", "redlock", "mutex", OURS];
    let mut programs: Vec<_> = clients.map(|client| program(client, client, &this)).into();
    let mut scale = Scale::WHOLE;
    let mut names = Vec::new();
    let mut report = Report::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => scale = Scale::QUICK,
            "--beside" => {
                let beside = arguments.next().unwrap_or_default();
                let beside = beside.split_once('=');
                let (name, path) = beside.ok_or_else(|| Failed(USAGE.to_owned()))?;
                programs.push(program(name, OURS, Path::new(path)));
                report.beside.push(name.to_owned());
            }
            option if option.starts_with('-') => return Err(Failed(USAGE.to_owned())),
            _ => names.push(argument),
        }
    }
    let bench = Bench {
        scale,
        programs,
        report,
    };
    Ok((bench, names))
}

/// Finds the folder for results, in cargo's for what it builds.
fn folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    target.join("bench")
}

/// Finds the tree that this program is of.
fn root() -> PathBuf {
    // Cargo says where this crate is when it runs it; a path from build time would be wrong after a move.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = here.as_deref().and_then(|here| here.ancestors().nth(2));
    root.unwrap_or_else(|| Path::new(".")).to_owned()
}

const USAGE: &str = "\
usage: cargo xtask bench [--quick] [--beside NAME=PROGRAM] [ROWS]
       cargo xtask bench --publish RESULTS

  --quick                a first look, with fewer and shorter repeats
  --beside NAME=PROGRAM  measures the client of another tree too: PROGRAM is its redlock-bench
  --publish RESULTS      writes a results.json, and its figures, into the documents of this tree
  ROWS                   only these, such as: P1 P2";
