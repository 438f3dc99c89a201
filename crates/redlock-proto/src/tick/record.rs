use std::{fmt, sync::Arc, time::Duration};

use super::{
    Series,
    ledger::{RunEnd, TickLine},
};
use crate::{FencingToken, Tick};

/// A line of a job's record on a node: its series, its tick and attempt, its fencing token, and a text that nodes do not
/// read.
///
/// A node has the lines of a series in the order of their ticks, and of the attempts of each tick, the newest first, and
/// at most [`MOST`](Self::MOST) of them.
/// The newest one's tick and attempt are the *watermark* of the series on that node.
///
/// Of the lines before those, a node keeps the newest tick as an *anchor*: an entry that describes no run and that no
/// client can withdraw.
/// Without it, a node whose newest lines are all withdrawn would forget that earlier ticks were started.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct JobEntry {
    /// The series.
    pub series: Series,
    /// The tick.
    pub tick: Tick,
    /// The number of the tick's run, from 1 to 99.
    pub attempt: u8,
    /// The fencing token.
    pub token: u64,
    /// The rest, in one line.
    pub text: Arc<str>,
}

impl JobEntry {
    /// The most lines that a node keeps of a series, an anchor aside; of one with an upper-case letter, it is one line.
    ///
    /// A backfill of the job adapter has a hundred ticks at most, and the run that its first claim finds must stay.
    pub const MOST: usize = 101;

    /// No lease has this token.
    const NO_TOKEN: u64 = 0;

    /// Returns the most lines that a node keeps of this series, an anchor aside.
    pub(crate) const fn most_of(series: Series) -> usize {
        if series.has_one_line() { 1 } else { Self::MOST }
    }

    /// Returns what a node keeps of this run when it has too many: its tick.
    pub(crate) fn to_anchor(&self) -> Self {
        Self {
            series: self.series,
            tick: self.tick,
            attempt: self.attempt,
            token: Self::NO_TOKEN,
            text: "-".into(),
        }
    }

    /// Returns whether it is an anchor, which tells of no run.
    pub(crate) const fn is_anchor(&self) -> bool {
        self.token == Self::NO_TOKEN
    }

    /// Returns its order in its series: a line after it has a greater one.
    pub fn order(&self) -> (Tick, u8) {
        (self.tick, self.attempt)
    }

    /// Returns it as nodes keep it: the series, the tick in sixteen digits, the attempt in two, the token in sixteen, and the
    /// text.
    pub fn to_wire(&self) -> String {
        let Self {
            series,
            tick,
            attempt,
            token,
            text,
        } = self;
        format!(
            "{series} {:016} {attempt:02} {token:016} {text}",
            tick.as_millis()
        )
    }

    /// Returns what nodes keep, read; `None` if it is something else.
    pub fn from_wire(line: &str) -> Option<Self> {
        let (series, rest) = line.split_once(' ')?;
        let (tick, rest) = rest.split_once(' ')?;
        let (attempt, rest) = rest.split_once(' ')?;
        let (token, text) = rest.split_once(' ')?;
        let number = |digits: &str| match digits.len() {
            16 => digits.parse().ok(),
            _ => None,
        };
        Some(Self {
            series: Series::from_wire(series)?,
            tick: Tick::from_millis(number(tick)?)?,
            attempt: match attempt.len() {
                2 => attempt.parse().ok()?,
                _ => return None,
            },
            token: number(token)?,
            text: text.into(),
        })
    }

    /// Returns whether it is about the same run as another.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        let key = |entry: &Self| (entry.series, entry.order(), entry.token);
        key(self) == key(other)
    }
}

/// One run of a job, as the nodes remember it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RunRecord {
    /// The series of the job's record in which it is.
    pub series: Series,
    /// The tick.
    pub tick: Tick,
    /// The number of the tick's run, from 1 on.
    pub attempt: u8,
    /// The fencing token of its lease: greater than that of every run before it.
    pub token: FencingToken,
    /// The configuration of the job on the replica that claimed it.
    pub fingerprint: u64,
    /// The time at which that replica had won the claim, by its own wall clock, in milliseconds since the Unix epoch.
    pub claimed_at: u64,
    /// The replica that claimed it.
    pub replica: Word,
    /// Its state.
    pub state: RunState,
    /// The claimant's words about its end, for people.
    pub note: Option<Note>,
}

/// The state of a run, as far as the nodes know it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RunState {
    /// A replica has claimed it, and has not recorded an outcome yet.
    ///
    /// If no replica holds the job's lock any more, there will be no outcome.
    Claimed,
    /// It ended.
    Ended {
        /// The outcome, in a word that the application chooses.
        outcome: Word,
        /// The time that it took.
        took: Duration,
    },
}

impl RunRecord {
    /// The word for a run that its claimant records as not started, although it had won the tick: for example, because
    /// the job is paused.
    ///
    /// A claim that was not won leaves no run: the client tells nodes that remember it to forget it.
    pub const UNSTARTED: &'static str = "unstarted";

    /// The word for a run whose claimant released the lease and did not record how the run ended.
    pub const DROPPED: &'static str = "dropped";

    /// Returns whether it was cut short, once no replica holds its lock: it has no recorded outcome, or it was
    /// [never started](Self::UNSTARTED), [dropped](Self::DROPPED), or ended with one of `outcomes`.
    pub fn was_cut_short(&self, outcomes: &[Word]) -> bool {
        match &self.state {
            RunState::Claimed => true,
            RunState::Ended { outcome, .. } => {
                let word = outcome.as_str();
                [Self::UNSTARTED, Self::DROPPED].contains(&word) || outcomes.contains(outcome)
            }
        }
    }

    /// Returns its line in decisions about its tick: a run was cut short as in [`was_cut_short`](Self::was_cut_short), and
    /// ended well with one of the outcomes `well`.
    #[doc(hidden)]
    pub fn line(&self, cut_short: &[Word], well: &[&str]) -> TickLine {
        let end = match &self.state {
            RunState::Claimed => RunEnd::Open,
            _ if self.was_cut_short(cut_short) => RunEnd::CutShort,
            RunState::Ended { outcome, .. } if well.contains(&outcome.as_str()) => RunEnd::Well,
            RunState::Ended { .. } => RunEnd::Over,
        };
        TickLine {
            tick: self.tick,
            attempt: self.attempt,
            end,
        }
    }

    /// Returns whether it has no recorded outcome.
    pub fn is_open(&self) -> bool {
        self.state == RunState::Claimed
    }

    pub(crate) fn to_entry(&self) -> JobEntry {
        let (word, took) = match &self.state {
            RunState::Claimed => (CLAIMED, 0),
            RunState::Ended { outcome, took } => {
                let (word, took) = (outcome.as_str(), took.as_millis());
                let took = u64::try_from(took).unwrap_or(u64::MAX);
                // Without a time, that word says that nothing is known.
                (word, took.max(u64::from(word == CLAIMED)))
            }
        };
        let (fingerprint, at, replica) = (self.fingerprint, self.claimed_at, &self.replica);
        let note = self
            .note
            .as_ref()
            .map(|note| format!(" {note}"))
            .unwrap_or_default();
        JobEntry {
            series: self.series,
            tick: self.tick,
            attempt: self.attempt,
            token: self.token.get(),
            text: format!("{fingerprint:016x} {at} {word} {took} {replica}{note}").into(),
        }
    }

    /// Returns what an entry says; `None` if it is an anchor, or if this version cannot read it.
    pub fn of(entry: &JobEntry) -> Option<Self> {
        let mut words = entry.text.splitn(6, ' ');
        let fingerprint = u64::from_str_radix(words.next()?, 16).ok()?;
        let claimed_at = words.next()?.parse().ok()?;
        let word = words.next()?;
        let took = Duration::from_millis(words.next()?.parse().ok()?);
        let replica = Word::new(words.next()?)?;
        let state = match word {
            CLAIMED if took.is_zero() => RunState::Claimed,
            word => RunState::Ended {
                outcome: Word::new(word)?,
                took,
            },
        };
        let note = words.next().map(Note::new);
        // An empty one is not written.
        if note == Some(None) {
            return None;
        }
        Some(Self {
            series: entry.series,
            tick: entry.tick,
            attempt: entry.attempt,
            token: FencingToken::new(entry.token)?,
            fingerprint,
            claimed_at,
            replica,
            state,
            note: note.flatten(),
        })
    }
}

/// A word on the nodes: 1 to 64 bytes, without spaces and control characters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Word(
    // invariant: checked by `new`
    Arc<str>,
);

impl Word {
    /// The longest, in bytes.
    pub const LONGEST: usize = 64;

    /// Makes a word of `text`; `None` if it is none.
    pub fn new(text: &str) -> Option<Self> {
        let is_word = (1..=Self::LONGEST).contains(&text.len())
            && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        is_word.then(|| Self(text.into()))
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line of text on the nodes, for people: 1 to 200 bytes, without control characters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Note(
    // invariant: checked by `new`
    Arc<str>,
);

impl Note {
    /// The longest, in bytes.
    pub const LONGEST: usize = 200;

    /// Makes a note of `text`: spaces in place of its control characters, and its first 200 bytes at most; `None` if nothing
    /// is left.
    pub fn new(text: &str) -> Option<Self> {
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let text = text.trim();
        let mut ends = (0..=text.len().min(Self::LONGEST)).rev();
        let end = ends.find(|end| text.is_char_boundary(*end))?;
        (end > 0).then(|| Self(text[..end].into()))
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The word for a run of which nothing more is known.
const CLAIMED: &str = "claimed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_that_can_be_written_is_read_as_it_is() {
        for (word, took, read) in [
            (
                "claimed",
                Duration::from_millis(20),
                Duration::from_millis(20),
            ),
            // That word needs a time.
            ("claimed", Duration::ZERO, Duration::from_millis(1)),
            ("ok", Duration::MAX, Duration::from_millis(u64::MAX)),
        ] {
            let outcome = Word::new(word).unwrap();
            let ended = |took| {
                record(RunState::Ended {
                    outcome: outcome.clone(),
                    took,
                })
            };
            assert_eq!(RunRecord::of(&ended(took).to_entry()), Some(ended(read)));
        }
    }

    fn record(state: RunState) -> RunRecord {
        RunRecord {
            series: Series::TICKS,
            tick: Tick::from_millis(1_795_226_400_000).unwrap(),
            attempt: 2,
            token: FencingToken::new(77).unwrap(),
            fingerprint: 0xabc,
            claimed_at: 1_795_226_400_120,
            replica: Word::new("pod-7:31").unwrap(),
            state,
            note: None,
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let ended = RunState::Ended {
            outcome: Word::new("failed").unwrap(),
            took: Duration::from_millis(1_234),
        };
        for state in [RunState::Claimed, ended] {
            let record = record(state);
            let wire = record.to_entry().to_wire();
            assert!(!wire.contains('\n'));
            let entry = JobEntry::from_wire(&wire).unwrap();
            assert_eq!(RunRecord::of(&entry), Some(record));
        }
        let claimed = record(RunState::Claimed).to_entry().to_wire();
        assert_eq!(
            claimed,
            "t 0001795226400000 02 0000000000000077 0000000000000abc 1795226400120 claimed 0 pod-7:31"
        );
    }

    #[test]
    fn what_is_no_entry_is_not_read_as_one() {
        let good = record(RunState::Claimed).to_entry();
        for bad in [
            "",
            "t 1 01 2 x",
            "t 0001795226400000 01 77 x",
            "t 0001795226400000 01 000000000000000x x",
            "t 0001795226400000 1 0000000000000077 x",
            "t 0001795226400000 0000000000000077 x",
            "0001795226400000 01 0000000000000077 x",
            "tt 0001795226400000 01 0000000000000077 x",
            "- 0001795226400000 01 0000000000000077 x",
        ] {
            assert_eq!(JobEntry::from_wire(bad), None, "{bad:?}");
        }
        for bad in [
            "",
            "x",
            "g 1 ok 1 r",
            "1 1 ok 1",
            "1 1 ok 1 r ",
            "1 1 ok x r",
        ] {
            let text = bad.into();
            let entry = JobEntry {
                text,
                ..good.clone()
            };
            assert_eq!(RunRecord::of(&entry), None, "{bad:?}");
        }
    }

    #[test]
    fn a_note_is_one_line_of_its_text() {
        for (text, note) in [
            (" disk\nfull ", Some("disk full")),
            (&"ö".repeat(150), Some(&*"ö".repeat(100))),
            ("\u{7}", None),
        ] {
            let read = Note::new(text);
            assert_eq!(read.as_ref().map(Note::as_str), note);
            let run = RunRecord {
                note: read,
                ..record(RunState::Claimed)
            };
            let entry = JobEntry::from_wire(&run.to_entry().to_wire()).unwrap();
            assert_eq!(RunRecord::of(&entry), Some(run));
        }
    }

    #[test]
    fn a_word_has_no_space() {
        for bad in ["", "a b", "a\n", "a\u{a0}b", &"x".repeat(65)] {
            assert_eq!(Word::new(bad), None, "{bad:?}");
        }
        assert_eq!(Word::new("größe").unwrap().as_str(), "größe");
    }
}
