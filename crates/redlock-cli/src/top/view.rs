//! The screen of one look.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Block, Row, Table},
};

use super::sample::{NodeSample, Sample, next_tick_ms};
use crate::{
    clock::{self, millis, rounded},
    connection::NodeSettings,
    jobs,
    keys::HeldKey,
    lookup::line,
    nodes::{name, ready_in, votes, why_not},
    output::printable,
};

/// Draws all of it; what does not fit is left out from below.
pub(super) fn draw(frame: &mut Frame<'_>, sample: Option<&Sample>, settings: &NodeSettings) {
    let Some(sample) = sample else {
        let (namespace, nodes) = (settings.namespace(), settings.config.nodes.len());
        let text = format!("{namespace}: looks at {nodes} nodes…");
        let [head, _, foot] = Layout::vertical(AROUND).areas(frame.area());
        frame.render_widget(Line::from(text).bold(), head);
        return frame.render_widget(footer(), foot);
    };
    let height = |rows: usize| {
        u16::try_from(rows)
            .unwrap_or(u16::MAX)
            .saturating_add(BORDERS)
    };
    let has_jobs = !sample.jobs.is_empty() || sample.jobs_unknown.is_some();
    let of_jobs_height = if has_jobs {
        // Keys have the other half of what is left.
        height(sample.jobs.len()).min(frame.area().height / 3)
    } else {
        0
    };
    let in_line = sample.keys.iter().map(|(key, _)| key.in_line().len());
    let line_height = match in_line.sum() {
        0 => 0,
        callers => height(callers).min(frame.area().height / 4),
    };
    let heights = [
        Constraint::Length(1),
        Constraint::Length(height(sample.nodes.len())),
        Constraint::Min(3),
        Constraint::Length(line_height),
        Constraint::Length(of_jobs_height),
        Constraint::Length(1),
    ];
    let [head, nodes, keys, line, jobs, foot] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(of_lines(&sample.keys, line.width), line);
    if has_jobs {
        frame.render_widget(of_jobs(sample, jobs.width), jobs);
    }
    frame.render_widget(title(sample, settings), head);
    frame.render_widget(of_nodes(&sample.nodes, nodes.width), nodes);
    let of_keys = of_keys(&sample.keys, settings.majority(), keys.width);
    frame.render_widget(of_keys, keys);
    frame.render_widget(footer(), foot);
}

fn footer() -> Line<'static> {
    Line::from("q: leave").dim()
}

fn title(sample: &Sample, settings: &NodeSettings) -> Line<'static> {
    let voting = sample.nodes.iter().filter(|node| votes(&node.report));
    let votes = voting.count();
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
        votes if votes < majority => Color::Red,
        votes if votes == majority && nodes > 1 => Color::Yellow,
        _ => Color::Green,
    };
    Line::from(text + &clock).style(Style::new().fg(color).bold())
}

fn of_nodes(nodes: &[NodeSample], width: u16) -> Table<'_> {
    let rows = nodes.iter().map(|node| {
        let report = &node.report;
        let (word, color) = match (votes(report), ready_in(report)) {
            (true, _) => ("votes".to_owned(), Color::Green),
            (false, Some(left)) => (format!("in {:.1} s", left.as_secs_f64()), Color::Yellow),
            (false, None) => ("no".to_owned(), Color::Red),
        };
        let time = node
            .round_trip
            .map(|time| format!("{:.1} ms", millis(time)));
        let clock = node.clock_ahead_ms.map_or_else(|| plain("-"), clock);
        let why = why_not(report).or_else(|| node.keys_unknown.clone());
        [
            plain(&name(report)),
            (word, Style::new().fg(color)),
            plain(time.as_deref().unwrap_or("-")),
            clock,
            plain(why.as_deref().unwrap_or_default()),
        ]
    });
    // An address of IPv4, and twice as much where a server is named beside it.
    let is_named = nodes.iter().any(|node| node.report.server().is_some());
    let longest = if is_named { 46 } else { 21 };
    let widths = [
        Constraint::Max(longest),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    let head = ["node", "vote", "answers", "clock", "why"];
    table(head, rows, widths, width).block(Block::bordered().title("nodes"))
}

/// Returns the cell that tells how far a clock is off, red from a second on, when its node does not vote.
fn clock(ahead_ms: f64) -> Text {
    let text = if ahead_ms.abs() < 0.5 {
        "0 ms".to_owned()
    } else if ahead_ms.abs() < 1_000.0 {
        format!("{ahead_ms:+.0} ms")
    } else {
        format!("{:+.1} s", ahead_ms / 1_000.0)
    };
    let color = match ahead_ms.abs() {
        off if off >= 1_000.0 => Color::Red,
        off if off >= 250.0 => Color::Yellow,
        _ => Color::Reset,
    };
    (text, Style::new().fg(color))
}

/// Returns in how long a tick is, in words.
fn next(tick_ms: Option<f64>) -> String {
    let Some(ms) = tick_ms else {
        return "-".to_owned();
    };
    let left = ms / 1_000.0 - clock::wall().as_secs_f64();
    match Duration::try_from_secs_f64(left) {
        Ok(left) => rounded(left),
        Err(_) => "now".to_owned(),
    }
}

fn of_jobs(sample: &Sample, width: u16) -> Table<'_> {
    let rows = sample.jobs.iter().map(|(job, memory)| {
        let state = jobs::state(memory);
        let color = if state.starts_with("paused") {
            Color::Yellow
        } else {
            Color::Reset
        };
        let last = memory.runs().first().map(ToString::to_string);
        [
            plain(job),
            (state, Style::new().fg(color)),
            plain(&next(next_tick_ms(memory))),
            plain(last.as_deref().unwrap_or("-")),
        ]
    });
    let has_next = sample
        .jobs
        .iter()
        .any(|(_, memory)| next_tick_ms(memory).is_some());
    let next_width = if has_next { 11 } else { 0 };
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(next_width),
        Constraint::Fill(2),
    ];
    let title = match &sample.jobs_unknown {
        Some(why) => format!("jobs, as they were: {why}"),
        None => "jobs".to_owned(),
    };
    let title = fitted(&title, width.saturating_sub(2));
    let head = ["job", "state", "next", "last run"];
    table(head, rows, widths, width).block(Block::bordered().title(title))
}

/// The callers of all processes that wait in line.
fn of_lines(keys: &[(HeldKey, u64)], width: u16) -> Table<'_> {
    let rows = keys.iter().flat_map(|(key, _)| {
        key.in_line().iter().map(|caller| {
            [
                plain(&key.key),
                plain(&line::label(caller)),
                plain(&line::client(caller)),
                plain(&rounded(caller.waited)),
            ]
        })
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(16),
        Constraint::Length(9),
    ];
    let head = ["key", "caller", "client", "waits"];
    table(head, rows, widths, width).block(Block::bordered().title("in line"))
}

fn of_keys(keys: &[(HeldKey, u64)], majority: usize, width: u16) -> Table<'_> {
    let rows = keys.iter().map(|(key, changes)| {
        let left = key.left.map_or_else(|| "for ever".to_owned(), rounded);
        let line = key
            .line
            .as_ref()
            .map(|line| line.callers().len().to_string());
        let few = if key.votes < majority {
            Color::Yellow
        } else {
            Color::Reset
        };
        [
            plain(&key.key),
            plain(&key.owner.holder()),
            (key.votes.to_string(), Style::new().fg(few)),
            plain(&left),
            plain(&line.unwrap_or_else(|| "-".to_owned())),
            plain(&changes.to_string()),
        ]
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(4),
        Constraint::Length(7),
    ];
    let head = ["key", "holder", "nodes", "left", "line", "changes"];
    table(head, rows, widths, width).block(Block::bordered().title("keys"))
}

/// The text of a cell, and how it looks.
type Text = (String, Style);

fn plain(text: &str) -> Text {
    (text.to_owned(), Style::new())
}

/// Returns a table for a frame of this width, in which a sign ends each text that was cut.
fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [Text; N]>,
    widths: [Constraint; N],
    width: u16,
) -> Table<'static> {
    let inside = Rect::new(0, 0, width.saturating_sub(2), 1);
    let columns: [Rect; N] = Layout::horizontal(widths).spacing(1).areas(inside);
    let row = |cells: [Text; N]| {
        let cells = cells.into_iter().zip(columns);
        Row::new(cells.map(|((text, style), column)| {
            let text = fitted(&printable(&text), column.width);
            Span::styled(text, style)
        }))
    };
    let head = row(head.map(plain)).bold();
    Table::new(
        rows.map(row),
        columns.map(|column| Constraint::Length(column.width)),
    )
    .header(head)
}

/// Returns a text cut to `width` columns, with a sign at its end if a part of it is missing.
fn fitted(text: &str, width: u16) -> String {
    let line = Line::from(text);
    if line.width() <= usize::from(width) {
        return text.to_owned();
    }
    let mut shown = String::new();
    for char in text.chars() {
        shown.push(char);
        if Line::from(format!("{shown}{CUT}")).width() > usize::from(width) {
            shown.pop();
            break;
        }
    }
    if width > 0 {
        shown.push(CUT);
    }
    shown
}

/// Stands for the part of a text that does not fit.
const CUT: char = '…';

/// The lines above and below of all.
const AROUND: [Constraint; 3] = [
    Constraint::Length(1),
    Constraint::Min(0),
    Constraint::Length(1),
];

/// Two lines around a table, and its head.
const BORDERS: u16 = 3;

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_text_that_is_cut_says_so() {
        assert_eq!(fitted("order:7", 7), "order:7");
        assert_eq!(fitted("order:77", 7), "order:…");
        assert_eq!(fitted("ab", 1), "…");
        assert_eq!(fitted("ab", 0), "");
        // Each takes two columns.
        assert_eq!(fitted("注文番号", 6), "注文…");
    }
}
