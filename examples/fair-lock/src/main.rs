//! Three processes come for one key, one after the other and again and again.
//!
//! Each is told by the nodes when it is its turn, so they are served in the order in which they came.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod caller;

use std::{
    io::{BufRead, BufReader},
    process::{ExitCode, Stdio},
    thread,
    time::Duration,
};

use redlock_core::Redlock;
use redlock_sandbox::{Process, SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::{
    sync::mpsc::{self, UnboundedSender},
    time::{sleep, timeout},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a caller has the key, and how far apart the first visits are.
const APART: Duration = Duration::from_millis(400);
/// How often each of them comes.
const VISITS: usize = 3;
const NAMES: [&str; 3] = ["A", "B", "C"];
const LONGEST: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        [] => {
            let shown = timeout(LONGEST, show()).await;
            shown.unwrap_or_else(|_| Err(format!("not done after {LONGEST:?}").into()))
        }
        ["caller", name, nodes] => caller::run(name, nodes).await,
        _ => {
            eprintln!("usage: fair-lock");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("fair-lock: failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Shows the order in which callers come, and that in which they are served.
async fn show() -> Result<(), BoxError> {
    let binary = ServerBinary::find().map_err(|missing| {
        format!(
            "install redis-server or valkey-server, or name one by {SERVER_VARIABLE}: {missing}"
        )
    })?;
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default())?;
    let redlock = Redlock::builder().nodes(servers.urls()).build().await?;
    // The servers are new, so they can have forgotten nothing.
    redlock.dangerous_bless().await;

    let held = redlock.acquire("counter").await?;
    let (says, mut lines) = mpsc::unbounded_channel();
    let mut callers = Vec::new();
    let (mut came, mut served) = (Vec::new(), Vec::new());
    for name in NAMES {
        callers.push(start(name, &servers.urls().join(","), says.clone())?);
        let (first, _) = lines.recv().await.ok_or("no caller is left")?;
        came.push(first);
        sleep(APART).await;
    }
    println!("the key is free");
    held.release().await?;
    while served.len() < NAMES.len() * VISITS {
        let (name, line) = lines.recv().await.ok_or("no caller is left")?;
        let of = if line == caller::COMES {
            &mut came
        } else {
            &mut served
        };
        of.push(name);
    }
    if came != served {
        return Err(format!("they came {came:?} and were served {served:?}").into());
    }
    println!(
        "fair-lock: ok: they came and were served in this order: {}",
        served.join(" ")
    );
    Ok(())
}

/// Starts a caller, which ends with the value that is returned; what it says comes by `says`.
fn start(
    name: &'static str,
    nodes: &str,
    says: UnboundedSender<(&'static str, String)>,
) -> Result<Process, BoxError> {
    let mut command = Process::command(std::env::current_exe()?);
    command.args(["caller", name, nodes]).stdout(Stdio::piped());
    let mut process = Process::spawn(command)?;
    let output = process.take_stdout().ok_or("its output is piped")?;
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{name} {line}");
            // The receiver may be gone.
            let _ = says.send((name, line));
        }
    });
    Ok(process)
}
