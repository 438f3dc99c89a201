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
        let names = bars.clone().flat_map(|bar| lines(&bar.name));
        let left = 24.0 + names.map(|name| width_of(&name)).fold(0.0, f64::max);
        let width = (left + NARROWEST + RIGHT).max(WIDTH);
        let longest = bars.map(Bar::length).chain(self.mark);
        let longest = longest.filter(|length| length.is_finite());
        let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
        let longest = self.most.map_or(longest, |most| longest.min(most));
        let scale = (width - left - RIGHT) / longest;
        let mark = self.mark.map(|mark| mark.mul_add(scale, left));
        let mut body = String::new();
        let top = 62.0;
        let mut y = top;
        for group in self.groups.iter().filter(|group| !group.bars.is_empty()) {
            if !group.name.is_empty() {
                y += 8.0;
                text(&mut body, "head", 16.0, y + 10.0, &group.name);
                y += 20.0;
            }
            for bar in &group.bars {
                bar.draw(&mut body, left, y, longest, scale, mark);
                y += LINE.mul_add(lines(&bar.name).len() as f64 - 1.0, STEP);
            }
        }
        if let Some(x) = mark {
            let _ = writeln!(
                body,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{y:.1}\"/>"
            );
        }
        let height = y + 14.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n",
            escaped(&self.title)
        );
        text(&mut svg, "title", 16.0, 26.0, &self.title);
        text(&mut svg, "note", 16.0, 46.0, &self.note);
        svg + &body + "</svg>\n"
    }
}

impl Bar {
    fn draw(
        &self,
        body: &mut String,
        left: f64,
        y: f64,
        longest: f64,
        scale: f64,
        mark: Option<f64>,
    ) {
        let baseline = y + 13.0;
        for (index, line) in lines(&self.name).iter().enumerate() {
            let baseline = LINE.mul_add(index as f64, baseline);
            text(body, "name", 16.0, baseline, line);
        }
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
        let x = start.mul_add(scale, left);
        // The mark crosses no words: they stand behind it then.
        let is_crossed = |mark: &f64| x <= *mark && *mark <= x + 8.0 + width_of(&words);
        let x = mark.filter(is_crossed).unwrap_or(x);
        text(body, "value", x + 6.0, baseline, &words);
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

/// Breaks a name that is long into lines.
fn lines(name: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > LONGEST {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Estimates how wide words are; fonts differ.
fn width_of(words: &str) -> f64 {
    7.0 * words.chars().count() as f64
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
/// The room for one more line of a name.
const LINE: f64 = 15.0;
/// The most letters in a line of a name.
const LONGEST: usize = 46;

// The ground is drawn too: a page may be dark although its reader's system is light.
const STYLE: &str = "\
.ground{fill:#fff}\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:600}.head{font-weight:600}.note,.value{fill:#59636e}\
.strong{fill:#0969da}.plain{fill:#8c959f}.bad{fill:#cf222e}.part1{opacity:.5}\
.mark{stroke:#1f2328;stroke-dasharray:4 3}\
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#f0f6fc}.note,.value{fill:#9198a1}\
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
        let rects = svg
            .lines()
            .filter(|line| line.starts_with("<rect") && !line.contains("ground"));
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
    fn no_words_are_crossed_by_the_mark() {
        let mut chart = chart(&[0.1, 0.9, 3.0]);
        chart.mark = Some(1.0);
        let svg = chart.svg();
        let x = |line: &str| -> f64 {
            let (_, rest) = line.split_once(" x").unwrap();
            let (_, number) = rest.split_once('"').unwrap();
            number.split_once('"').unwrap().0.parse().unwrap()
        };
        let line = |class: &str| {
            let class = format!("class=\"{class}\"");
            svg.lines().filter(move |line| line.contains(&class))
        };
        let mark = line("mark").map(x).next().unwrap();
        let values: Vec<f64> = line("value").map(x).collect();
        assert!(values[0] + width_of("0.1") < mark, "{svg}");
        assert!(mark < values[1] && values[1] < values[2], "{svg}");
    }

    #[test]
    fn a_long_name_takes_several_lines() {
        let name = "a pair, in calls of 8 acquires and 8 releases, by the script";
        let lines = lines(name);
        assert_eq!(lines.join(" "), name);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(super::lines("raw"), ["raw"]);
        assert_eq!(super::lines(""), [""]);
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
