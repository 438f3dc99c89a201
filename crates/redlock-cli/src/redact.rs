//! Takes passwords out of text that may repeat a URL.

/// Returns a text with all that stands between `://` and the last `@` after it replaced; without `://`, between the first
/// quotation mark and the last `@`, for a URL that is none.
///
/// More than a password may be lost this way, and no part of a password is left, whatever is in it.
pub(crate) fn redacted(text: &str) -> String {
    let Some((before, after)) = text.split_once("://") else {
        return match text.split_once('"') {
            Some((before, quoted)) => match quoted.rsplit_once('@') {
                Some((_, rest)) => format!("{before}\"***@{rest}"),
                None => text.to_owned(),
            },
            None => text.to_owned(),
        };
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
            (
                "string \":hunter2@h\", expected",
                "string \"***@h\", expected",
            ),
        ] {
            assert_eq!(redacted(text), left);
        }
    }
}
