use std::fmt;

/// A series of lines in the record of a job: each has a watermark of its own.
///
/// A job has one record on each node.
/// Its scheduled [ticks](Self::TICKS) are one series; what else belongs to the job, such as its pauses or the moments at
/// which operators asked for runs, is claimed in further series, and read with the ticks at once.
/// Of a series with an upper-case letter, nodes keep the newest line only.
///
/// ```
/// use redlock_proto::Series;
///
/// const PAUSES: Series = Series::new('p');
/// assert!(PAUSES != Series::TICKS);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Series(
    // invariant: an ASCII letter or digit
    u8,
);

impl Series {
    /// The scheduled ticks.
    pub const TICKS: Self = Self(b't');

    /// Makes the series of a letter or a digit.
    ///
    /// # Panics
    ///
    /// If it is no ASCII letter or digit.
    pub const fn new(letter: char) -> Self {
        assert!(
            letter.is_ascii_alphanumeric(),
            "a series is a letter or a digit"
        );
        Self(letter as u8)
    }

    /// Returns whether nodes keep its newest line only, an anchor aside.
    pub(super) const fn has_one_line(self) -> bool {
        self.0.is_ascii_uppercase()
    }

    /// Returns the series that nodes call by this text.
    pub(super) fn from_wire(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [letter] if letter.is_ascii_alphanumeric() => Some(Self(*letter)),
            _ => None,
        }
    }
}

impl Default for Series {
    fn default() -> Self {
        Self::TICKS
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(self.0))
    }
}
