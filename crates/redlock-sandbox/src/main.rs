//! Runs servers for as long as its standard input stays open: something to point a client at.
//!
//! `redlock-sandbox [COUNT]` starts five servers, or COUNT, prints one line `PID URL` for each, and
//! stops them all when its input ends (Ctrl-D), or when it is stopped in any way itself.

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    process::ExitCode,
};

use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("redlock-sandbox: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let count = env::args().nth(1).map_or(Ok(5), |count| count.parse())?;
    let servers = ServerSet::start(&ServerBinary::find()?, count, &ServerOptions::default())?;

    let mut output = io::stdout().lock();
    for server in &servers {
        let pid = server.pid().ok_or("a server ended at once")?;
        writeln!(output, "{pid} {}", server.url())?;
    }
    output.flush()?;

    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
