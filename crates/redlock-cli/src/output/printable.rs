//! Text of others on a terminal.

use redlock_proto::Printable;

/// Returns a text with all escaped that would change the text beside it: the author of a name must neither move the cursor
/// nor begin a line.
pub(crate) fn printable(text: &str) -> String {
    Printable::new(text).to_string()
}

/// Returns a text of the command's own, with all escaped that others may have put into it.
pub(super) fn lines(text: &str) -> String {
    Printable::lines(text).to_string()
}
