//! A service as one writes it with axum and sqlx, and what the layer and the fence do for it.
//!
//! Three replicas, each a process of its own, share one database.
//! An order must be paid once, stock must not be oversold, and a tenant's imports must not mix.
//! `server` is the service, `store` its database; the rest is there to show them at work.
//! The README beside this says how to run one replica by hand.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod answers;
mod books;
mod client;
mod command;
mod late;
mod load;
mod replica;
mod server;
mod show;
mod store;

use std::{io::IsTerminal, process::ExitCode, time::Duration};

use command::Command;
use stage::limited;

const LONGEST: Duration = Duration::from_secs(29);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(command) = Command::from_arguments(&arguments) else {
        eprintln!("{}", command::USAGE);
        return ExitCode::from(2);
    };
    let ended = match command {
        Command::Serve(options) => {
            tracing_subscriber::fmt()
                .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
                .with_writer(std::io::stderr)
                .with_ansi(std::io::stderr().is_terminal())
                .init();
            server::serve(options).await.map(|()| None)
        }
        Command::Load(replicas) => limited(LONGEST, load::judge(&replicas)).await.map(Some),
        Command::Show(show) => limited(LONGEST, show::run(show)).await.map(Some),
    };
    match ended {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(verdict)) => {
            println!("axum-orders: ok: {verdict}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("axum-orders: not ok: {error}");
            ExitCode::FAILURE
        }
    }
}
