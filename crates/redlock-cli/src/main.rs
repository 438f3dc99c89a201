//! `redlock`: checks, watches and operates the nodes of a lock.

mod args;
mod bench;
mod bless;
mod child;
mod clock;
mod confirm;
mod connection;
mod context;
mod doctor;
mod ending;
mod exit;
mod guide;
mod jobs;
mod lookup;
mod ls;
mod namespaces;
mod output;
mod policy;
mod probe;
mod processes;
mod ready;
mod redact;
mod release;
mod roll;
mod run;
mod sandbox;
mod shell;
mod signals;
mod standing;
mod status;
mod top;
mod watch;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use tokio::{runtime::Runtime, select};

use crate::{
    args::{Arguments, Verb},
    context::Context,
    exit::{Exit, Failure},
    output::Output,
    redact::redacted,
};

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1);
    let first = typed.next().unwrap_or_default();
    if first == run::WARDEN {
        return run::warden(typed);
    }
    if first == run::LEASHED {
        return run::leashed(typed);
    }
    let matches = match Arguments::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            print(&error);
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => {
            print(&error);
            return Exit::Wrong.into();
        }
    };
    let output = Output::new(arguments.json, arguments.color);
    // Libraries leave the choice to their application, and a choice that was made stands.
    #[cfg(feature = "tls-rustls")]
    drop(rustls::crypto::ring::default_provider().install_default());
    let outcome = Runtime::new()
        .map_err(|error| Failure::wrong(format!("the runtime cannot be started: {error}")))
        .and_then(|runtime| {
            let outcome = runtime.block_on(run(arguments.verb, output));
            // A look at a name, or at what is typed, may not end.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(exit) => {
            if let Exit::Key(signal) = exit {
                run::press(signal);
            }
            exit.into()
        }
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Exit::ClosedPipe.into()
        }
        Err(failure) => {
            // As above.
            drop(output.complain(&failure.to_string()));
            failure.exit().into()
        }
    }
}

/// Prints the help, or the error in the arguments, without passwords: any argument may be a URL.
fn print(error: &clap::Error) {
    let text = error.render().to_string();
    let shown = redacted(&text);
    // The output may be closed.
    if shown == text {
        drop(error.print());
    } else {
        drop(write!(io::stderr(), "{shown}"));
    }
}

/// Executes a verb until it is done or a signal interrupts it, then releases what it still holds.
async fn run(verb: Verb, output: Output) -> Result<Exit, Failure> {
    let context = Context::new(output);
    let outcome = match verb {
        // Signals are the command's that it runs.
        Verb::Run(args) => run::run(args, &context).await,
        verb => select! {
            biased;
            exit = signals::interrupted() => Ok(exit),
            outcome = verb_of(verb, &context) => outcome,
        },
    };
    context.close().await;
    outcome
}

async fn verb_of(verb: Verb, context: &Context) -> Result<Exit, Failure> {
    match verb {
        Verb::Doctor(args) => doctor::run(args, context).await,
        Verb::Ready(args) => ready::run(args, context).await,
        Verb::Status(args) => status::run(args, context).await,
        Verb::Ls(args) => ls::run(args, context).await,
        Verb::Release(args) => release::run(args, context).await,
        Verb::Bless(args) => bless::run(args, context).await,
        Verb::Top(args) => top::run(args, context).await,
        Verb::Watch(args) => watch::run(args, context).await,
        Verb::Roll(args) => roll::run(args, context).await,
        Verb::Jobs(args) => jobs::run(args, context).await,
        Verb::Bench(args) => bench::run(args, context).await,
        Verb::Guide(args) => guide::run(&args, context),
        Verb::Sandbox(args) => sandbox::run(args, context).await,
        Verb::Completions(args) => shell::completions(&args, Arguments::command(), context),
        Verb::Man(args) => shell::man(&args, Arguments::command(), context),
        Verb::Run(args) => run::run(args, context).await,
    }
}
