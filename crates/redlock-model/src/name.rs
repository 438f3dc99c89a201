use std::fmt::{self, Write as _};

/// A client's name.
pub(crate) struct Name(pub(crate) usize);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = "ABCDEFGH".chars().nth(self.0);
        f.write_char(letter.unwrap_or('?'))
    }
}
