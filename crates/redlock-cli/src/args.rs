//! The arguments of the command, and the completions and manual pages that are made from them.

use std::{io, path::PathBuf};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    bench, bless, console,
    context::CommandContext,
    doctor,
    exit::{CommandError, CommandResult, EXIT_CODES, Exit},
    guide, jobs, keys, leader, operator,
    output::Color,
    ready, roll, run, sandbox, status, top, watch,
};

/// Runs commands under a lock, and checks, watches and operates the nodes of the lock
#[derive(Debug, Parser)]
#[command(
    name = "redlock",
    version,
    after_help = EXIT_CODES,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    /// Prints JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colours; NO_COLOR turns them off too
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,

    /// A file with the library's settings, as TOML
    #[arg(long, global = true, value_name = "FILE", help_heading = "Nodes")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) verb: CommandVerb,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum CommandVerb {
    /// Runs a command while it holds a lock, and stops it before another holder can get the lock
    Run(run::RunArgs),
    /// Runs a command while this process leads, and campaigns again when its term is lost
    Elect(run::ElectArgs),
    /// Prints the leader of an election
    #[command(after_help = "Example:\n  redlock leader importer")]
    Leader(leader::LeaderArgs),
    /// Checks the nodes, and prints advice for each finding
    #[command(after_help = "Example:\n  redlock doctor --strict")]
    Doctor(doctor::DoctorArgs),
    /// Tells whether one node votes, for a health check
    #[command(after_help = "Example:\n  redlock ready 10.0.0.1:6379 --wait 2m")]
    Ready(ready::ReadyArgs),
    /// Prints the holder of a key, node by node
    #[command(after_help = "Example:\n  redlock status order:7")]
    Status(status::StatusArgs),
    /// Lists the keys that are held
    #[command(after_help = "Example:\n  redlock ls order: --namespace billing")]
    Ls(keys::ListArgs),
    /// Takes a key away from its holder
    #[command(after_help = "Example:\n  redlock release order:7 --force")]
    Release(keys::ReleaseArgs),
    /// Lets quarantined nodes vote, because you confirm that they have forgotten nothing
    #[command(after_help = "Example:\n  redlock bless --namespace billing")]
    Bless(bless::BlessArgs),
    /// Looks at the nodes each second, so that quarantines age, and prints what changes
    #[command(after_help = "Example:\n  redlock watch --listen 0.0.0.0:9000")]
    Watch(watch::WatchArgs),
    /// Shows the present nodes, keys, holders and jobs, until you press q
    #[command(after_help = "Example:\n  redlock top order: --namespace billing")]
    Top(top::TopArgs),
    /// Serves a page for browsers: nodes, keys, lines, jobs, elections, findings and actions
    #[command(after_help = "Example:\n  redlock console --operate")]
    Console(console::ConsoleArgs),
    /// Restarts node after node, each when the one before votes again
    #[command(
        after_help = "Example:\n  redlock roll -- ssh {host} sudo systemctl restart redlock-node"
    )]
    Roll(roll::RollArgs),
    /// Prints jobs; pauses, resumes, triggers, backfills, stops, cancels, forgets one
    #[command(after_help = "Example:\n  redlock jobs billing/close-day")]
    Jobs(jobs::JobsArgs),
    /// Prints what operators did with jobs, keys and nodes: the last hundred actions
    #[command(after_help = "Example:\n  redlock log --json")]
    Log(operator::LogArgs),
    /// Measures round trips, acquires and contention, and the shortest ttl that the nodes allow
    #[command(after_help = "Example:\n  redlock bench --for 5s")]
    Bench(bench::BenchArgs),
    /// Prints the files to deploy nodes, and their users with all rights
    #[command(after_help = "Example:\n  redlock guide compose --namespace billing --max-ttl 1m")]
    Guide(guide::GuideArgs),
    /// Starts local servers for a try-out, and runs a command that uses them
    #[command(after_help = "Example:\n  redlock sandbox --nodes 5 -- cargo run")]
    Sandbox(sandbox::SandboxArgs),
    /// Prints completions for a shell
    #[command(after_help = "Example:\n  redlock completions bash >/etc/bash_completion.d/redlock")]
    Completions(CompletionsArgs),
    /// Prints a manual page
    #[command(after_help = "Example:\n  redlock man --dir /usr/local/share/man/man1")]
    Man(ManArgs),
}

/// The arguments of `completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The arguments of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// The verb; the command as a whole without one
    verb: Option<String>,

    /// Writes all pages into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

/// Prints completions for a shell.
pub(crate) fn completions(args: &CompletionsArgs, context: &CommandContext) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "redlock", &mut text);
    print(&text, context)
}

/// Prints a manual page, or writes all of them.
pub(crate) fn man(args: &ManArgs, context: &CommandContext) -> CommandResult {
    let mut command = Arguments::command();
    if let Some(folder) = &args.dir {
        let written = clap_mangen::generate_to(command, folder);
        let cannot =
            |error: io::Error| CommandError::wrong(format!("{}: {error}", folder.display()));
        written.map_err(cannot)?;
        return Ok(Exit::Yes);
    }
    command.build();
    let page = match &args.verb {
        None => Man::new(command),
        Some(verb) => {
            let found = command.find_subcommand(verb).cloned();
            let missing = || CommandError::wrong(format!("{verb} is no verb of redlock"));
            Man::new(found.ok_or_else(missing)?)
        }
    };
    let mut text = Vec::new();
    page.render(&mut text)?;
    print(&text, context)
}

fn print(text: &[u8], context: &CommandContext) -> CommandResult {
    let text = String::from_utf8_lossy(text);
    context.output.plain(text.trim_end())?;
    Ok(Exit::Yes)
}
