//! A table as text.

/// Lines of cells under a header: the first column to the left, the others to the right.
#[derive(Debug)]
pub(crate) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        let header = header.map(str::to_owned).into();
        Self {
            lines: vec![header],
        }
    }

    pub(crate) fn add<const N: usize>(&mut self, line: [String; N]) {
        self.lines.push(line.into());
    }

    pub(crate) fn text(&self) -> String {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("  {cell:width$}")
                } else {
                    format!("  {cell:>width$}")
                }
            });
            format!("{}\n", cells.collect::<String>().trim_end())
        };
        self.lines.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let mut table = Table::new(["", "p50 µs", "goal"]);
        table.add(["raw".to_owned(), "71.2".to_owned(), String::new()]);
        table.add(["rslock".to_owned(), "108".to_owned(), "≤ 2".to_owned()]);
        let expected = "          p50 µs  goal\n  raw       71.2\n  rslock     108   ≤ 2\n";
        assert_eq!(table.text(), expected);
    }
}
