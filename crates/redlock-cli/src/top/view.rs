//! The screen of one look.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Block, Row, Table},
};

use redlock_console::{
    Snapshot,
    snapshot::{JobSnapshot, KeySnapshot, NodeSnapshot, RunSnapshot, VerdictState},
};

use crate::{
    clock::{self, rounded},
    connection::NodeSettings,
    nodes::name_at,
    output::printable,
};

/// Draws all of it; what does not fit is left out from below.
pub(super) fn draw(frame: &mut Frame<'_>, sample: Option<&Snapshot>, settings: &NodeSettings) {
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
    let in_line = sample.keys.iter().flat_map(|key| &key.line);
    let in_line = in_line.map(|line| line.clients.len());
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
    frame.render_widget(title(sample), head);
    frame.render_widget(of_nodes(&sample.nodes, nodes.width), nodes);
    let of_keys = of_keys(&sample.keys, settings.majority(), keys.width);
    frame.render_widget(of_keys, keys);
    frame.render_widget(footer(), foot);
}

fn footer() -> Line<'static> {
    Line::from("q: leave").dim()
}

fn title(sample: &Snapshot) -> Line<'static> {
    let verdict = &sample.verdict;
    let sentence = verdict.sentence.trim_end_matches('.');
    let text = format!(
        "{}: {sentence}, {} keys",
        sample.namespace, sample.keys_total
    );
    let clock = match sample.ahead_ms {
        Some(ahead) if ahead.abs() >= 100.0 => {
            format!(", this clock is off by {:.1} s", ahead / 1_000.0)
        }
        _ => String::new(),
    };
    let color = match verdict.state {
        VerdictState::Unknown | VerdictState::NoQuorum => Color::Red,
        VerdictState::Critical => Color::Yellow,
        _ => Color::Green,
    };
    Line::from(text + &clock).style(Style::new().fg(color).bold())
}

fn of_nodes(nodes: &[NodeSnapshot], width: u16) -> Table<'_> {
    let rows = nodes.iter().map(|node| {
        let (word, color) = match (node.votes, node.ready_in_ms) {
            (true, _) => ("votes".to_owned(), Color::Green),
            (false, Some(left)) => (format!("in {:.1} s", left / 1_000.0), Color::Yellow),
            (false, None) => ("no".to_owned(), Color::Red),
        };
        let time = node.round_trip_ms.map(|time| format!("{time:.1} ms"));
        let clock = node.clock_ahead_ms.map_or_else(|| plain("-"), clock);
        let why = node.why.as_ref().or(node.keys_unknown.as_ref());
        [
            plain(&name_at(&node.node, node.server.as_deref())),
            (word, Style::new().fg(color)),
            plain(time.as_deref().unwrap_or("-")),
            clock,
            plain(why.map_or("", String::as_str)),
        ]
    });
    // An address of IPv4, and twice as much where a server is named beside it.
    let is_named = nodes.iter().any(|node| node.server.is_some());
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

/// Returns a run in a few words.
fn run(run: &RunSnapshot) -> String {
    let RunSnapshot { tick, replica, .. } = run;
    match (&run.not_started, &run.outcome) {
        (Some(why), _) => format!("{tick}: not started, {why}"),
        (None, Some(outcome)) => format!("{tick} on {replica}: {outcome}"),
        (None, None) => format!("{tick} on {replica}: no end is known"),
    }
}

fn of_jobs(sample: &Snapshot, width: u16) -> Table<'_> {
    let rows = sample.jobs.iter().map(|job| {
        let color = if job.state.starts_with("paused") {
            Color::Yellow
        } else {
            Color::Reset
        };
        let last = job.runs.first().map(run);
        [
            plain(&job.job),
            (job.state.clone(), Style::new().fg(color)),
            plain(&next(job.next_tick_ms)),
            plain(last.as_deref().unwrap_or("-")),
        ]
    });
    let has_next = |job: &JobSnapshot| job.next_tick_ms.is_some();
    let has_next = sample.jobs.iter().any(has_next);
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
fn of_lines(keys: &[KeySnapshot], width: u16) -> Table<'_> {
    let rows = keys.iter().flat_map(|key| {
        let callers = key.line.iter().flat_map(|line| &line.clients);
        callers.map(|caller| {
            let label = caller.label.as_deref();
            [
                plain(&key.key),
                plain(label.unwrap_or("a caller without a label")),
                plain(&caller.client),
                plain(&time(caller.waits_ms)),
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

/// Returns a time of a snapshot, in words.
fn time(ms: f64) -> String {
    rounded(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default())
}

fn of_keys(keys: &[KeySnapshot], majority: usize, width: u16) -> Table<'_> {
    let rows = keys.iter().map(|key| {
        let left = key.remaining_ms.map_or_else(|| "for ever".to_owned(), time);
        let line = key.line.as_ref().map(|line| line.callers.to_string());
        let few = if key.votes < majority {
            Color::Yellow
        } else {
            Color::Reset
        };
        let holder = key.holder.as_deref();
        [
            plain(&key.key),
            plain(holder.unwrap_or("a holder without a label")),
            (key.votes.to_string(), Style::new().fg(few)),
            plain(&left),
            plain(line.as_deref().unwrap_or("-")),
            plain(&key.changed_hands.to_string()),
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
