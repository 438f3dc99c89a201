//! The text in which processes tell Prometheus what they measure.

/// One series of a text.
#[derive(Debug, PartialEq)]
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    labels: Vec<(&'a str, String)>,
    pub(super) value: f64,
}

impl Series<'_> {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        labels
            .find(|(label, _)| *label == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Reads a text; lines that make no sense are passed over.
pub(super) fn series(text: &str) -> impl Iterator<Item = Series<'_>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(one)
}

fn one(line: &str) -> Option<Series<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(behind) = rest.strip_prefix('}') {
                rest = behind;
                break;
            }
            let (label, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            // It goes to a terminal.
            if value.contains(char::is_control) {
                return None;
            }
            labels.push((label, value));
            rest = behind;
        }
    }
    // A time may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Series {
        name,
        labels,
        value,
    })
}

/// Returns a value without what escapes in it, and what is behind its quotation mark.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_read_and_nonsense_is_passed_over() {
        let text = "# HELP up how\nup 1\n\nheld{lock=\"a \\\"b\\\" } {\",node=\"c\\\\d\"} 2.5 17\n\
            half{lock=\"a\nlines{lock=\"a\\nb\"} 1\nempty{} NaN\nnone{lock=\"a\"}\n";
        let all: Vec<_> = series(text).collect();
        let names: Vec<_> = all.iter().map(|series| series.name).collect();
        assert_eq!(names, ["up", "held", "empty"]);
        assert_eq!(all[1].label("lock"), Some("a \"b\" } {"));
        assert_eq!(all[1].label("node"), Some("c\\d"));
        assert_eq!((all[0].value, all[1].value), (1.0, 2.5));
        assert!(all[2].value.is_nan() && all[2].label("lock").is_none());
    }
}
