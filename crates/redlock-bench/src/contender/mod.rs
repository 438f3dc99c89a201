//! One client in a process of its own, so that its CPU time and its memory are its own.
//!
//! It connects, prints a line, and then reads one line with a [`Workload`] at a time, which it answers with one line.
//! It ends with its standard input, even in the middle of a workload: none outlives the bench.

mod concurrent;
mod hot;
mod locks;
mod mutex;
mod ours;
mod raw;
mod redis_rs;
mod redlock;
mod rslock;
mod sample;
mod workload;

use std::{
    io::{self, BufRead, Write},
    process,
    sync::mpsc,
    thread,
    time::Duration,
};

pub(crate) use self::workload::{Outcome, Spread, Workload};
use self::{concurrent::Concurrent, redis_rs::RedisRs};
use crate::failed::{Failed, Result};

/// The line that a contender prints once it is connected.
pub(crate) const READY: &str = "ready";

/// The time to live of every lock, which no sample comes near to.
const TTL: Duration = Duration::from_secs(30);

/// A client under measurement.
trait Client {
    /// Does what it is told, and says how that went.
    fn run(&mut self, workload: &Workload) -> Result<Outcome>;
}

/// Runs the contender `name` over `nodes` until standard input ends.
pub(crate) fn serve(name: &str, nodes: &[String]) -> Result<()> {
    let lines = lines();
    let mut client: Box<dyn Client> = match name {
        "ours" => Box::new(Concurrent::start(ours::Ours::connect(nodes))?),
        "raw" => Box::new(raw::Raw::connect(nodes)?),
        "redis-rs" => Box::new(Concurrent::start(RedisRs::connect(nodes))?),
        "redlock" => Box::new(redlock::Redlock::new(nodes)),
        "mutex" => Box::new(Concurrent::start(async { Ok(mutex::Mutexes::default()) })?),
        "rslock" => Box::new(Concurrent::start(rslock::Rslock::connect(nodes))?),
        other => return Err(Failed(format!("there is no contender {other}"))),
    };
    say(READY)?;
    for line in lines {
        let outcome = client.run(&serde_json::from_str(&line)?)?;
        say(&serde_json::to_string(&outcome)?)?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Reads the lines of standard input, whose end is the end of this process.
#[expect(
    clippy::exit,
    reason = "a client that hangs must not outlive the process that measures it"
)]
fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(io::Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        process::exit(0);
    });
    receiver
}
