//! A writer of HTML into which no text gets unescaped: names of keys, labels and errors come from anywhere.

use std::fmt::{self, Display, Write as _};

use redlock_core::Printable;

/// A piece of HTML.
///
/// Names of elements and attributes are literals of this crate; every text and every value of an attribute is escaped.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

/// The attributes of an element, with their values.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

impl Html {
    /// Adds an element, whose content `inner` writes.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        inner: impl FnOnce(&mut Self),
    ) {
        self.begin(name, attributes);
        inner(self);
        // HTML lets these end with what comes next, and a table has thousands of them.
        if !matches!(name, "li" | "td" | "th" | "tr") {
            self.0.push_str("</");
            self.0.push_str(name);
            self.0.push('>');
        }
    }

    /// Adds an element with a text.
    pub(super) fn leaf(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        text: impl Display,
    ) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// Adds the beginning of an element; all there is of one without content, such as `input`.
    pub(super) fn begin(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Adds a text, with every character escaped that could end it, or the value of an attribute.
    ///
    /// Control characters, and those that change the direction of the text beside them, are shown by their numbers.
    pub(super) fn text(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(Escaping(&mut self.0), "{text}");
    }

    /// Adds a piece that is HTML already.
    pub(super) fn append(&mut self, piece: &Self) {
        self.0.push_str(&piece.0);
    }

    /// Returns the HTML.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The end of a text, to which all is added escaped.
struct Escaping<'a>(&'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let printable = Printable::new(text).to_string();
        for char in printable.chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(char),
            }
        }
        Ok(())
    }
}

/// A text as it is written in a part of an address, such as `close%20day`.
pub(super) struct InAddress<'a>(pub(super) &'a str);

impl Display for InAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                f.write_char(char::from(byte))
            }
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_neither_ends_an_attribute_nor_begins_an_element() {
        let hostile = "<img src=\"x\" onerror='a()'>&\u{202e}\n";
        let mut html = Html::default();
        html.leaf("a", &[("title", &hostile)], hostile);
        let escaped = r"&lt;img src=&quot;x&quot; onerror=&#39;a()&#39;&gt;&amp;\u{202e}\n";
        let expected = format!("<a title=\"{escaped}\">{escaped}</a>");
        assert_eq!(html.into_string(), expected);
    }

    #[test]
    fn a_name_in_an_address_begins_no_other_part_of_it() {
        let name = InAddress("billing/a&b=#?\"é").to_string();
        assert_eq!(name, "billing/a%26b%3D%23%3F%22%C3%A9");
    }
}
