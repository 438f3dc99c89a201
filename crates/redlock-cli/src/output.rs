//! The output of the command: text that fits the terminal, or JSON.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
};

use clap::ValueEnum;
use redlock_core::Printable;
use serde::Serialize;
use serde_json::{Value, json};

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
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What a line is marked as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineMark {
    Good,
    Note,
    Warning,
    Bad,
}

impl Output {
    pub(crate) fn new(is_json: bool, color: Color) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_set = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let no_color = is_set || env::var_os("TERM").is_some_and(|term| term == "dumb");
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
        let indent = LineMark::WIDTH + 1;
        let text = wrap(&lines(text), self.width, indent);
        self.plain(&format!("{:indent$}{text}", ""))
    }

    /// Writes a line that begins with a mark.
    pub(crate) fn marked(self, mark: LineMark, text: &str) -> io::Result<()> {
        let text = wrap(&lines(text), self.width, LineMark::WIDTH + 1);
        let word = format!("{:<width$}", mark.word(), width = LineMark::WIDTH);
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

    /// Writes what is wrong with a node: marked, or beside JSON.
    pub(crate) fn bad_node(self, node: &str, why: &str) -> io::Result<()> {
        if self.is_json {
            self.complain(&format!("{node}: {why}"))
        } else {
            self.marked(LineMark::Bad, &format!("{node} {why}"))
        }
    }

    /// Asks a question before what cannot be undone; the answer is no where there is no terminal.
    pub(crate) async fn is_confirmed(self, question: &str) -> io::Result<bool> {
        if self.is_json || !io::stdin().is_terminal() {
            return Ok(false);
        }
        self.line(question)?;
        // On a blocking thread, so that a signal interrupts the wait for input.
        let typed = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        let line = typed.await.map_err(io::Error::other)??;
        Ok(line.trim() == "yes")
    }

    /// Tells what went wrong, beside the output.
    pub(crate) fn complain(self, message: &str) -> io::Result<()> {
        let mut out = io::stderr().lock();
        if self.is_json {
            return writeln!(out, "{}", json!({"error": message}));
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

impl LineMark {
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

/// Returns a JSON object with the fields of another behind its own.
pub(crate) fn with_fields(mut object: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        fields.extend(more);
    }
    object
}

/// Returns a text with all escaped that would change the text beside it: the author of a name must neither move the cursor
/// nor begin a line.
pub(crate) fn printable(text: &str) -> String {
    Printable::new(text).to_string()
}

/// Returns a text of the command's own, with all escaped that others may have put into it.
fn lines(text: &str) -> String {
    Printable::lines(text).to_string()
}

/// Returns a text with line breaks, so that no line but one of a single long word is longer than `width`.
///
/// It begins at column `indent`, and so does each line after the first.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
        }
        // What stands in columns stays there.
        let lead = line.len() - line.trim_start().len();
        let mut column = indent + lead;
        wrapped.push_str(&line[..lead]);
        let mut is_first = true;
        for word in line[lead..].split(' ') {
            let length = word.chars().count();
            if !is_first && column + 1 + length > width && !word.is_empty() {
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', indent + lead));
                column = indent + lead;
            } else if !is_first {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
            is_first = false;
        }
    }
    wrapped
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

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_fit_and_nothing_is_lost() {
        let text = "it may have forgotten leases: wait, it votes in 29,123 ms at the earliest";
        let wrapped = wrap(text, 30, 5);
        assert!(wrapped.lines().count() > 2);
        for (number, line) in wrapped.lines().enumerate() {
            let start = if number == 0 { 5 } else { 0 };
            assert!(start + line.len() <= 30, "{line}");
            assert!(number == 0 || line.starts_with("     "));
        }
        let words: Vec<_> = wrapped.split_whitespace().collect();
        assert_eq!(words.join(" "), text);
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(wrap("a  b\n  c", 20, 0), "a  b\n  c");
        let long = "x".repeat(40);
        assert_eq!(wrap(&long, 20, 0), long);
    }
}
