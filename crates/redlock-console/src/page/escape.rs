//! Text in HTML: names of keys, labels and errors come from anywhere, so nothing gets into a page but through here.

use std::fmt;

/// A text as HTML shows it: with every character escaped that could end a text or the value of an attribute.
///
/// Control characters, and those that change the direction of the text beside them, are shown by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = redlock_core::Printable::new(self.0).to_string();
        let mut rest = &*printable;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '`']) {
            f.write_str(&rest[..at])?;
            let escaped = match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                _ => "&#96;",
            };
            f.write_str(escaped)?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn a_text_neither_ends_an_attribute_nor_begins_a_tag() {
        let text = Text("<img src=\"x\" onerror='a()'>&`\u{202e}\n").to_string();
        assert!(
            !text.contains(['<', '>', '"', '\'', '`', '\n', '\u{202e}']),
            "{text}"
        );
        assert!(text.starts_with("&lt;img src=&quot;x&quot;"), "{text}");
    }
}
