use std::fmt::{self, Write};

/// A text of others, such as a name or a label, as a terminal or a log can show it.
///
/// Control characters, and characters that change the direction of a text, are escaped.
///
/// Such a text can neither move the cursor, nor begin a line, nor have the text beside it shown in another order.
///
/// # Examples
///
/// ```
/// # use redlock_core::Printable;
///
/// let shown = Printable::new("order\n\u{202e}24").to_string();
/// assert_eq!(shown, r"order\n\u{202e}24");
/// let lines = Printable::lines("a page\nof its author").to_string();
/// assert_eq!(lines, "a page\nof its author");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a> {
    text: &'a str,
    has_lines: bool,
}

impl<'a> Printable<'a> {
    /// Returns the text, of which line breaks are escaped, too.
    pub const fn new(text: &'a str) -> Self {
        Self {
            text,
            has_lines: false,
        }
    }

    /// Returns the text, whose line breaks are its author's.
    pub const fn lines(text: &'a str) -> Self {
        Self {
            text,
            has_lines: true,
        }
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.text.chars();
        chars.try_for_each(|char| match char {
            '\n' if self.has_lines => f.write_char(char),
            _ if char.is_control() || is_directional(char) => {
                write!(f, "{}", char.escape_debug())
            }
            _ => f.write_char(char),
        })
    }
}

/// Returns whether a character shows as nothing and changes the direction of the text behind it, or its lines.
const fn is_directional(char: char) -> bool {
    matches!(
        char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::Printable;

    #[test]
    fn what_changes_the_text_beside_it_is_escaped() {
        let shown = |text| Printable::new(text).to_string();
        assert_eq!(shown("a\u{1b}[31m\nb\u{9b}"), "a\\u{1b}[31m\\nb\\u{9b}");
        assert_eq!(
            shown("a\u{202e}b\u{2066}\u{200f}"),
            "a\\u{202e}b\\u{2066}\\u{200f}"
        );
        assert_eq!(shown("order:\"42\" \\ ä שלום"), "order:\"42\" \\ ä שלום");
        assert_eq!(shown(&shown("a\n\u{202e}")), shown("a\n\u{202e}"));
        assert_eq!(Printable::lines("a\nb\r").to_string(), "a\nb\\r");
    }
}
