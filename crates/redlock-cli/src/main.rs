//! `redlock`: checks, watches and operates the nodes of a lock.

mod args;
mod bench;
mod bless;
mod clock;
mod connection;
mod console;
mod context;
mod doctor;
mod exit;
mod guide;
mod http;
mod jobs;
mod keys;
mod leader;
mod namespaces;
mod nodes;
mod operator;
mod output;
mod ready;
mod roll;
mod run;
mod sandbox;
mod status;
mod top;
mod watch;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use redlock_console::look::{lookup, probe};
use tokio::{runtime::Runtime, select};

use crate::{
    args::{Arguments, CommandVerb},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit, redacted},
    output::Output,
};

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1);
    let first = typed.next().unwrap_or_default();
    if first == run::SUPERVISOR {
        return run::supervisor(typed);
    }
    if first == run::COMMAND {
        return run::become_command(typed);
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
        .map_err(|error| CommandError::wrong(format!("the runtime cannot be started: {error}")))
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
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
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
async fn run(verb: CommandVerb, output: Output) -> CommandResult {
    let context = CommandContext::new(output);
    // Signals are the command's that `run` or `elect` runs.
    let is_run = matches!(verb, CommandVerb::Run(_) | CommandVerb::Elect(_));
    let outcome = select! {
        biased;
        exit = context::signals::interrupted(), if !is_run => Ok(exit),
        outcome = verb_of(verb, &context) => outcome,
    };
    context.close().await;
    outcome
}

async fn verb_of(verb: CommandVerb, context: &CommandContext) -> CommandResult {
    match verb {
        CommandVerb::Doctor(args) => doctor::run(args, context).await,
        CommandVerb::Ready(args) => ready::run(args, context).await,
        CommandVerb::Status(args) => status::run(args, context).await,
        CommandVerb::Ls(args) => keys::ls(args, context).await,
        CommandVerb::Release(args) => keys::release(args, context).await,
        CommandVerb::Bless(args) => bless::run(args, context).await,
        CommandVerb::Top(args) => top::run(args, context).await,
        CommandVerb::Console(args) => console::run(args, context).await,
        CommandVerb::Watch(args) => watch::run(args, context).await,
        CommandVerb::Roll(args) => roll::run(args, context).await,
        CommandVerb::Jobs(args) => jobs::run(args, context).await,
        CommandVerb::Log(args) => operator::log(args, context).await,
        CommandVerb::Bench(args) => bench::run(args, context).await,
        CommandVerb::Guide(args) => guide::run(&args, context),
        CommandVerb::Sandbox(args) => sandbox::run(args, context).await,
        CommandVerb::Completions(args) => args::completions(&args, context),
        CommandVerb::Man(args) => args::man(&args, context),
        CommandVerb::Run(args) => run::run(args, context).await,
        CommandVerb::Elect(args) => run::elect(args, context).await,
        CommandVerb::Leader(args) => leader::run(args, context).await,
    }
}
