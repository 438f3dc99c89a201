//! What one look comes to on the screen.

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Style, Stylize},
    text::Line,
    widgets::{Block, Cell, Row, Table},
};

use super::sample::{Key, Node, Sample};
use crate::{connection::Settings, output::rounded};

/// Draws all of it; what does not fit is left out from below.
pub(super) fn draw(frame: &mut Frame<'_>, sample: &Sample, settings: &Settings) {
    let heights = [
        Constraint::Length(1),
        Constraint::Length(
            u16::try_from(sample.nodes.len())
                .unwrap_or(u16::MAX)
                .saturating_add(3),
        ),
        Constraint::Min(3),
        Constraint::Length(1),
    ];
    let [head, nodes, keys, foot] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(title(sample, settings), head);
    frame.render_widget(of_nodes(&sample.nodes), nodes);
    frame.render_widget(of_keys(&sample.keys, settings.majority()), keys);
    frame.render_widget(Line::from("q: leave").dim(), foot);
}

fn title(sample: &Sample, settings: &Settings) -> Line<'static> {
    let votes = sample
        .nodes
        .iter()
        .filter(|node| node.standing.votes)
        .count();
    let (nodes, majority) = (settings.config.nodes.len(), settings.majority());
    let text = format!(
        "{}: {votes} of {nodes} nodes vote, {majority} are needed, {} keys",
        settings.namespace(),
        sample.keys.len()
    );
    let clock = match sample.ahead_ms {
        Some(ahead) if ahead.abs() >= 100.0 => {
            format!(", this clock is off by {:.1} s", ahead / 1_000.0)
        }
        _ => String::new(),
    };
    let color = match votes {
        // Nothing was looked at yet.
        _ if sample.nodes.is_empty() => Color::Reset,
        votes if votes < majority => Color::Red,
        votes if votes == majority && nodes > 1 => Color::Yellow,
        _ => Color::Green,
    };
    Line::from(text + &clock).style(Style::new().fg(color).bold())
}

fn of_nodes(nodes: &[Node]) -> Table<'_> {
    let rows = nodes.iter().map(|node| {
        let standing = &node.standing;
        let (word, color) = match (standing.votes, standing.ready_in_ms) {
            (true, _) => ("votes".to_owned(), Color::Green),
            (false, Some(ms)) => (format!("in {:.1} s", ms / 1_000.0), Color::Yellow),
            (false, None) => ("no".to_owned(), Color::Red),
        };
        let time = node.round_trip_ms.map(|ms| format!("{ms:.1} ms"));
        let why = standing.why.as_ref().or(node.keys_unknown.as_ref());
        Row::new([
            Cell::new(standing.node.as_str()),
            Cell::new(word).style(Style::new().fg(color)),
            Cell::new(time.unwrap_or_else(|| "-".to_owned())),
            Cell::new(why.map_or("", String::as_str)),
        ])
    });
    let widths = [
        Constraint::Max(24),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let head = Row::new(["node", "vote", "answers", "why"]).bold();
    Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title("nodes"))
}

fn of_keys(keys: &[Key], majority: usize) -> Table<'_> {
    let rows = keys.iter().map(|key| {
        let line = &key.line;
        let left = line.left.map_or_else(|| "for ever".to_owned(), rounded);
        let few = if line.votes < majority {
            Color::Yellow
        } else {
            Color::Reset
        };
        Row::new([
            Cell::new(line.key.as_str()),
            Cell::new(line.shown.as_str()),
            Cell::new(line.votes.to_string()).style(Style::new().fg(few)),
            Cell::new(left),
            Cell::new(key.changed_hands.to_string()),
        ])
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(7),
    ];
    let head = Row::new(["key", "holder", "nodes", "left", "changes"]).bold();
    Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title("keys"))
}
