//! The output of the command: text that fits the terminal, or JSON.

mod printable;
mod time;
mod wrap;

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use clap::ValueEnum;
use serde::Serialize;

use self::{printable::lines, wrap::wrap};
pub(crate) use self::{
    printable::printable,
    time::{millis, moment, rounded},
};

/// Where output goes, and how it is to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    is_json: bool,
    has_colors: bool,
    width: usize,
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

/// What a line is marked as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    Good,
    Note,
    Warning,
    Bad,
}

impl Output {
    pub(crate) fn new(is_json: bool, color: Color) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            is_json,
            has_colors: match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => is_terminal && !no_color,
            },
            width: width(),
        }
    }

    /// Returns whether JSON is wanted.
    pub(crate) const fn is_json(self) -> bool {
        self.is_json
    }

    /// Writes a text as it is, with a line break after it.
    #[expect(clippy::unused_self, reason = "all output goes through here")]
    pub(crate) fn plain(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Writes a text in lines that fit.
    pub(crate) fn line(self, text: &str) -> io::Result<()> {
        self.plain(&wrap(&lines(text), self.width, 0))
    }

    /// Writes a text under the line before it.
    pub(crate) fn indented(self, text: &str) -> io::Result<()> {
        let indent = Mark::WIDTH + 1;
        let text = wrap(&lines(text), self.width, indent);
        self.plain(&format!("{:indent$}{text}", ""))
    }

    /// Writes a line that begins with a mark.
    pub(crate) fn marked(self, mark: Mark, text: &str) -> io::Result<()> {
        let text = wrap(&lines(text), self.width, Mark::WIDTH + 1);
        let word = format!("{:<width$}", mark.word(), width = Mark::WIDTH);
        if self.has_colors {
            let color = mark.color();
            self.plain(&format!("\x1b[{color}m{word}\x1b[0m {text}"))
        } else {
            self.plain(&format!("{word} {text}"))
        }
    }

    #[expect(clippy::unused_self, reason = "as above")]
    /// Writes one value as JSON, on a line of its own.
    pub(crate) fn json(self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, value)?;
        writeln!(out)?;
        out.flush()
    }

    /// Tells what went wrong, beside the output.
    pub(crate) fn complain(self, message: &str) -> io::Result<()> {
        let mut out = io::stderr().lock();
        if self.is_json {
            #[derive(Serialize)]
            struct Complaint<'a> {
                error: &'a str,
            }
            let complaint = Complaint { error: message };
            serde_json::to_writer(&mut out, &complaint)?;
            return writeln!(out);
        }
        writeln!(out, "redlock: {}", lines(message))
    }

    /// Tells what goes on, beside the output; nothing where JSON is wanted.
    pub(crate) fn progress(self, message: &str) {
        if !self.is_json {
            // Standard error may be closed, and that is no reason to stop.
            drop(writeln!(io::stderr().lock(), "redlock: {}", lines(message)));
        }
    }
}

impl Mark {
    const WIDTH: usize = 4;

    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Warning => "warn",
            Self::Bad => "FAIL",
        }
    }

    /// As terminals number them.
    const fn color(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Note => "36",
            Self::Warning => "33",
            Self::Bad => "1;31",
        }
    }
}

/// Returns how many columns there are: those of the terminal, or else what `COLUMNS` says.
fn width() -> usize {
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = terminal.map(|size| usize::from(size.ws_col));
    let said = || env::var("COLUMNS").ok()?.parse().ok();
    columns
        .filter(|columns| *columns > 0)
        .or_else(said)
        .map_or(USUAL, |columns| columns.clamp(NARROWEST, WIDEST))
}

/// The width if neither the terminal nor `COLUMNS` says one.
const USUAL: usize = 100;
/// Longer lines are hard to read.
const WIDEST: usize = 120;
/// In fewer columns there is hardly a word in a line.
const NARROWEST: usize = 24;
