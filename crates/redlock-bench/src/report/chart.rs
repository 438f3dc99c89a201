//! Bars as a picture: SVG by hand, readable on light and on dark ground.

use std::fmt::Write;

/// Horizontal bars in groups, longest at the right edge.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Below the title: what a bar is, and which direction is good.
    pub(crate) note: String,
    pub(crate) groups: Vec<Group>,
    /// Where a line is drawn across all bars.
    pub(crate) mark: Option<f64>,
    /// Longer bars end here, with an arrow.
    pub(crate) most: Option<f64>,
}

/// Bars with a headline; an empty one is left out.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar, of one or more parts.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) parts: Vec<f64>,
    /// What is written behind it.
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// The colour of a bar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tone {
    /// What the picture is about.
    Strong,
    /// What it is compared with.
    Plain,
    /// What is wrong.
    Bad,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().sum()
    }
}

impl Chart {
    /// Draws the picture.
    pub(crate) fn svg(&self) -> String {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let names = bars.clone().map(|bar| bar.name.chars().count());
        let left = 7.0_f64.mul_add(names.max().unwrap_or_default() as f64, 24.0);
        let width = (left + NARROWEST + RIGHT).max(WIDTH);
        let longest = bars.map(Bar::length).chain(self.mark);
        let longest = longest.filter(|length| length.is_finite());
        let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
        let longest = self.most.map_or(longest, |most| longest.min(most));
        let scale = (width - left - RIGHT) / longest;
        let mut body = String::new();
        let top = 62.0;
        let mut y = top;
        for group in &self.groups {
            if !group.name.is_empty() {
                y += 8.0;
                text(&mut body, "head", 16.0, y + 10.0, &group.name);
                y += 20.0;
            }
            for bar in &group.bars {
                bar.draw(&mut body, left, y, longest, scale);
                y += STEP;
            }
        }
        if let Some(mark) = self.mark {
            let x = mark.mul_add(scale, left);
            let _ = writeln!(
                body,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{y:.1}\"/>"
            );
        }
        let height = y + 14.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n",
            escaped(&self.title)
        );
        text(&mut svg, "title", 16.0, 26.0, &self.title);
        text(&mut svg, "note", 16.0, 46.0, &self.note);
        svg + &body + "</svg>\n"
    }
}

impl Bar {
    fn draw(&self, body: &mut String, left: f64, y: f64, longest: f64, scale: f64) {
        let baseline = y + 13.0;
        text(body, "name", 16.0, baseline, &self.name);
        let mut start = 0.0;
        for (index, part) in self.parts.iter().enumerate() {
            let end = (start + part).min(longest);
            // A figure that could not be measured has no bar.
            if !part.is_nan() && end > start {
                let (x, width) = (start.mul_add(scale, left), (end - start) * scale);
                let tone = self.tone.class();
                let _ = writeln!(
                    body,
                    "<rect class=\"{tone} part{index}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"17\" rx=\"2\"/>"
                );
                start = end;
            }
        }
        let arrow = if self.length() > longest { "› " } else { "" };
        let words = format!("{arrow}{}", self.text);
        text(
            body,
            "value",
            start.mul_add(scale, left) + 6.0,
            baseline,
            &words,
        );
    }
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Plain => "plain",
            Self::Bad => "bad",
        }
    }
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, words: &str) {
    // Writing to memory does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escaped(words)
    );
}

fn escaped(words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    words.replace('>', "&gt;")
}

const WIDTH: f64 = 760.0;
/// The room for what is written behind the longest bar.
const RIGHT: f64 = 190.0;
/// The room for bars, however long their names are.
const NARROWEST: f64 = 300.0;
const STEP: f64 = 22.0;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:600}.head{font-weight:600}.note,.value{fill:#59636e}\
.strong{fill:#0969da}.plain{fill:#8c959f}.bad{fill:#cf222e}.part1{opacity:.5}\
.mark{stroke:#1f2328;stroke-dasharray:4 3}\
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.note,.value{fill:#9198a1}\
.strong{fill:#4493f8}.plain{fill:#656c76}.bad{fill:#f85149}.mark{stroke:#f0f6fc}}";

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lengths: &[f64]) -> Chart {
        let bar = |length: &f64| Bar {
            name: "a < b".to_owned(),
            parts: vec![*length],
            text: format!("{length}"),
            tone: Tone::Plain,
        };
        Chart {
            title: "T & T".to_owned(),
            note: String::new(),
            groups: vec![Group {
                name: String::new(),
                bars: lengths.iter().map(bar).collect(),
            }],
            mark: None,
            most: None,
        }
    }

    fn widths(svg: &str) -> Vec<f64> {
        let rects = svg.lines().filter(|line| line.starts_with("<rect"));
        let width = |line: &str| {
            line.split("width=\"")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        };
        rects.filter_map(width).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_figures_and_those_without_one_are_left_out() {
        let widths = widths(&chart(&[1.0, 2.0, f64::NAN]).svg());
        assert_eq!(widths.len(), 2);
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
    }

    #[test]
    fn a_bar_that_is_too_long_ends_with_an_arrow() {
        let mut chart = chart(&[1.0, 40.0]);
        chart.most = Some(4.0);
        let svg = chart.svg();
        assert!(svg.contains(">› 40<"), "{svg}");
        let widths = widths(&svg);
        assert!((widths[1] / widths[0] - 4.0).abs() < 0.01, "{widths:?}");
    }

    #[test]
    fn words_are_escaped() {
        let svg = chart(&[1.0]).svg();
        assert!(
            svg.contains("a &lt; b") && svg.contains("T &amp; T"),
            "{svg}"
        );
        assert!(svg.contains("prefers-color-scheme:dark"), "{svg}");
    }
}
