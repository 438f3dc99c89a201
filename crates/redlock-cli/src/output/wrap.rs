//! Breaks lines.

/// Returns a text with line breaks, so that no line but one of a single long word is longer than `width`.
///
/// It begins at column `indent`, and so does each line after the first.
pub(super) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
        }
        // What stands in columns stays there.
        let lead = line.len() - line.trim_start().len();
        let mut column = indent + lead;
        wrapped.push_str(&line[..lead]);
        let mut is_first = true;
        for word in line[lead..].split(' ') {
            let length = word.chars().count();
            if !is_first && column + 1 + length > width && !word.is_empty() {
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', indent + lead));
                column = indent + lead;
            } else if !is_first {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
            is_first = false;
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_fit_and_nothing_is_lost() {
        let text = "it may have forgotten leases: wait, it votes in 29,123 ms at the earliest";
        let wrapped = wrap(text, 30, 5);
        assert!(wrapped.lines().count() > 2);
        for (number, line) in wrapped.lines().enumerate() {
            let start = if number == 0 { 5 } else { 0 };
            assert!(start + line.len() <= 30, "{line}");
            assert!(number == 0 || line.starts_with("     "));
        }
        let words: Vec<_> = wrapped.split_whitespace().collect();
        assert_eq!(words.join(" "), text);
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(wrap("a  b\n  c", 20, 0), "a  b\n  c");
        let long = "x".repeat(40);
        assert_eq!(wrap(&long, 20, 0), long);
    }
}
