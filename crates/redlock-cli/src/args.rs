//! What can be typed.

use clap::{Parser, Subcommand, ValueEnum};

use crate::{doctor, exit::EXIT_CODES};

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

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// When output has colours.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Checks the nodes, and says what to do about what it finds
    Doctor(doctor::Args),
}
