//! The arguments of the command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::{
    bench, bless, doctor, exit::EXIT_CODES, guide, jobs, ls, output::Color, ready, release, roll,
    run, sandbox, shell, status, top, watch,
};

/// Checks, watches and operates the nodes of a lock
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
    pub(crate) verb: Verb,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Checks the nodes, and prints advice for each finding
    #[command(after_help = "Example:\n  redlock doctor --strict")]
    Doctor(doctor::Args),
    /// Tells whether one node votes, for a health check
    #[command(after_help = "Example:\n  redlock ready 10.0.0.1:6379 --wait 2m")]
    Ready(ready::Args),
    /// Prints the holder of a key, node by node
    #[command(after_help = "Example:\n  redlock status order:7")]
    Status(status::Args),
    /// Lists the keys that are held
    #[command(after_help = "Example:\n  redlock ls order: --namespace billing")]
    Ls(ls::Args),
    /// Takes a key away from its holder
    #[command(after_help = "Example:\n  redlock release order:7 --force")]
    Release(release::Args),
    /// Lets quarantined nodes vote, because you confirm that they have forgotten nothing
    #[command(after_help = "Example:\n  redlock bless --namespace billing")]
    Bless(bless::Args),
    /// Looks at the nodes each second, so that quarantines age, and prints what changes
    #[command(after_help = "Example:\n  redlock watch --listen 0.0.0.0:9000")]
    Watch(watch::Args),
    /// Shows the present nodes, keys, holders and jobs, until you press q
    #[command(after_help = "Example:\n  redlock top order: --metrics http://web-1:9000/metrics")]
    Top(top::Args),
    /// Restarts node after node, each when the one before votes again
    #[command(
        after_help = "Example:\n  redlock roll -- ssh {host} sudo systemctl restart redlock-node"
    )]
    Roll(roll::Args),
    /// Prints what the nodes remember of jobs, and pauses, resumes or forgets a job
    #[command(after_help = "Example:\n  redlock jobs billing/close-day")]
    Jobs(jobs::Args),
    /// Measures round trips, acquires and contention, and the shortest ttl that the nodes allow
    #[command(after_help = "Example:\n  redlock bench --for 5s")]
    Bench(bench::Args),
    /// Prints the files to deploy nodes
    #[command(after_help = "Example:\n  redlock guide compose --namespace billing --max-ttl 1m")]
    Guide(guide::Args),
    /// Starts local servers for a try-out, and runs a command that uses them
    #[command(after_help = "Example:\n  redlock sandbox --nodes 5 -- cargo run")]
    Sandbox(sandbox::Args),
    /// Prints completions for a shell
    #[command(after_help = "Example:\n  redlock completions bash >/etc/bash_completion.d/redlock")]
    Completions(shell::CompletionsArgs),
    /// Prints a manual page
    #[command(after_help = "Example:\n  redlock man --dir /usr/local/share/man/man1")]
    Man(shell::ManArgs),
    /// Runs a command while it holds a lock, and stops it before another holder can get the lock
    Run(run::Args),
}
