use std::fmt;

/// The events of a world as one number, and line by line on request.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) const fn new(readable: bool) -> Self {
        let lines = if readable { Some(Vec::new()) } else { None };
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            lines,
        }
    }

    /// Mixes a number in.
    pub(crate) const fn mix(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Adds a line; `words` is called only if lines are kept.
    pub(crate) fn line(&mut self, time: u64, words: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            let words = words();
            lines.push(format!("{:>12.6} {words}", Seconds(time)));
        }
    }

    pub(crate) fn into_parts(self) -> (u64, Vec<String>) {
        (self.hash, self.lines.unwrap_or_default())
    }
}

/// Microseconds, written as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.pad_integral(true, "", &text)
    }
}
