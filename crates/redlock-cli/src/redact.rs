//! Takes passwords out of text that may repeat a URL.

/// Returns a text with `***` instead of the part from its first `://` or quotation mark to its last `@`.
///
/// The earlier of the two begins the part: a wrong URL may lack its scheme, and is quoted.
/// The part may be longer than a password, but no part of a password is left, whatever characters it has.
pub(crate) fn redacted(text: &str) -> String {
    let scheme = text.find("://").map(|at| at + "://".len());
    let quoted = text.find(['"', '\'']).map(|at| at + 1);
    let from = scheme.into_iter().chain(quoted).min();
    let parts = from.map(|from| text.split_at(from));
    match parts.map(|(before, after)| (before, after.rsplit_once('@'))) {
        Some((before, Some((_, rest)))) => format!("{before}***@{rest}"),
        _ => text.to_owned(),
    }
}

/// Returns a text with everything replaced between its first and its last quotation mark of some kind.
///
/// A password that is no part of a URL has no form by which it could be found.
pub(crate) fn unquoted(text: &str) -> String {
    let marks = ['`', '"'];
    match (text.find(marks), text.rfind(marks)) {
        (Some(first), Some(last)) if first < last => {
            format!("{}***{}", &text[..=first], &text[last..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{redacted, unquoted};

    #[test]
    fn no_part_of_a_password_is_left() {
        for (text, left) in [
            ("redis://me:hunter2@host", "redis://***@host"),
            (
                "\"redis://:p@ss://w@h, redis://:x@i\", expected",
                "\"***@i\", expected",
            ),
            ("redis://host", "redis://host"),
            ("mail me@host", "mail me@host"),
            (
                "unexpected argument 'me:hunter2@a,redis://me:x@b' found",
                "unexpected argument '***@b' found",
            ),
            (
                "unexpected argument 'me:hunter2@h' found",
                "unexpected argument '***@h' found",
            ),
            (
                "string \":hunter2@h\", expected",
                "string \"***@h\", expected",
            ),
        ] {
            assert_eq!(redacted(text), left);
        }
    }

    #[test]
    fn a_password_that_is_a_number_is_not_repeated() {
        for (text, left) in [
            (
                "integer `731731`, expected a string",
                "integer `***`, expected a string",
            ),
            ("string \"a\"b\", expected", "string \"***\", expected"),
            ("expected a string", "expected a string"),
        ] {
            assert_eq!(unquoted(text), left);
        }
    }
}
