//! Takes passwords out of text that may repeat a URL.

/// Returns a text with all that stands between `://` and the last `@` after it replaced.
///
/// More than a password may be lost this way, and no part of a password is left, whatever is in it.
pub(crate) fn redacted(text: &str) -> String {
    let Some((before, after)) = text.split_once("://") else {
        return text.to_owned();
    };
    match after.rsplit_once('@') {
        Some((_, rest)) => format!("{before}://***@{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn no_part_of_a_password_is_left() {
        for (text, left) in [
            ("redis://me:hunter2@host", "redis://***@host"),
            (
                "\"redis://:p@ss://w@h, redis://:x@i\", expected",
                "\"redis://***@i\", expected",
            ),
            ("redis://host", "redis://host"),
            ("mail me@host", "mail me@host"),
        ] {
            assert_eq!(redacted(text), left);
        }
    }
}
