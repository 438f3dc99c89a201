//! Text of others on a terminal.

use std::fmt::Write;

/// Returns a text with its control characters escaped: whoever names a key must neither move the cursor nor begin a line.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            // A string takes whatever is written.
            let _ = write!(printable, "{}", char.escape_debug());
        } else {
            printable.push(char);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_but_control_characters_is_escaped() {
        assert_eq!(printable("a\u{1b}[31m\nb\u{9b}"), "a\\u{1b}[31m\\nb\\u{9b}");
        assert_eq!(printable("order:\"42\" \\ ä"), "order:\"42\" \\ ä");
    }
}
