//! What all client processes did, in one history, and the check that no two held one key at once, unless they shared it.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf, time::Duration};

use tempfile::TempDir;

use crate::Event;

/// The files of all processes of one test.
#[derive(Debug)]
pub struct History(TempDir);

/// A time in which a lease was certainly valid and in use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hold {
    /// The resource.
    pub key: String,
    /// The process and its lease.
    pub owner: (u32, u64),
    /// The first moment.
    pub from: Duration,
    /// The last moment.
    pub to: Duration,
    /// The fencing token.
    pub token: u64,
    /// Whether others might hold the key too.
    pub is_shared: bool,
}

/// Two holds of one key at once, of which one is not to be shared: what must never be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Overlap {
    /// The one that was there.
    pub first: Hold,
    /// The one that came before the first was over.
    pub second: Hold,
}

impl History {
    /// An empty history.
    ///
    /// # Panics
    ///
    /// If there is no place for temporary files.
    pub fn new() -> Self {
        Self(TempDir::with_prefix("redlock-history-").expect("temporary files can be made"))
    }

    /// The file for the process that the test calls `name`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// All events so far, in order of time.
    ///
    /// # Panics
    ///
    /// If a file cannot be read, or has a line that is no event.
    pub fn events(&self) -> Vec<Event> {
        let files = fs::read_dir(self.0.path()).expect("the folder is there");
        let mut events = Vec::new();
        for file in files {
            let path = file.expect("the folder can be read").path();
            events.extend(parse(&fs::read_to_string(path).expect("a text file")));
        }
        events.sort_by_key(|event| event.at);
        events
    }

    /// The holds so far, in order of their beginning.
    pub fn holds(&self) -> Vec<Hold> {
        holds(&self.events())
    }

    /// Every hold that began before another of its key was over, of which one is not to be shared.
    pub fn overlaps(&self) -> Vec<Overlap> {
        overlaps(&self.holds())
    }

    /// Checks that no two holds of a key overlap and that each has a greater fencing token than the one before, but where
    /// both share the key; returns the holds.
    ///
    /// # Panics
    ///
    /// If two do, or one has not.
    pub fn assert_exclusive(&self) -> Vec<Hold> {
        let holds = self.holds();
        let disordered = disorder(&holds);
        assert!(
            disordered.is_empty(),
            "{} of {} tokens are no greater than the one before; the first: {}",
            disordered.len(),
            holds.len(),
            disordered[0]
        );
        let overlaps = overlaps(&holds);
        assert!(
            overlaps.is_empty(),
            "{} of {} holds overlap; the first: {}",
            overlaps.len(),
            holds.len(),
            overlaps[0]
        );
        holds
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            owner,
            from,
            to,
            token,
            ..
        } = self;
        write!(f, "{owner:?} from {from:?} to {to:?} with token {token}")
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second } = self;
        write!(f, "{}: {first}, and {second}", first.key)
    }
}

fn parse(text: &str) -> Vec<Event> {
    // A line without its end is still being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// What is certain: a hold lasts from its first event at which it was valid to the last such one.
fn holds(events: &[Event]) -> Vec<Hold> {
    let mut holds = BTreeMap::new();
    for event in events.iter().filter(|event| event.is_valid()) {
        let owner = (event.process, event.lease);
        let hold = holds.entry(owner).or_insert_with(|| Hold {
            key: event.key.clone(),
            owner,
            from: event.at,
            to: event.at,
            token: event.token,
            is_shared: event.is_shared,
        });
        hold.from = hold.from.min(event.at);
        hold.to = hold.to.max(event.at);
    }
    let mut holds: Vec<Hold> = holds.into_values().collect();
    holds.sort_by_key(|hold| (hold.from, hold.to));
    holds
}

/// Every hold that begins before another of its key is over, of which one is not to be shared.
fn overlaps(holds: &[Hold]) -> Vec<Overlap> {
    let mut longest: BTreeMap<(&str, bool), &Hold> = BTreeMap::new();
    let mut overlaps = Vec::new();
    for hold in holds {
        for is_shared in [false, true] {
            let before = longest.get(&(&*hold.key, is_shared)).copied();
            let meets = |before: &&Hold| before.owner != hold.owner && hold.from < before.to;
            if let Some(before) = before.filter(meets)
                && !(is_shared && hold.is_shared)
            {
                overlaps.push(Overlap {
                    first: before.clone(),
                    second: hold.clone(),
                });
            }
        }
        let longest = longest.entry((&hold.key, hold.is_shared)).or_insert(hold);
        if hold.to > longest.to {
            *longest = hold;
        }
    }
    overlaps
}

/// Every hold whose token is no greater than that of a hold of its key before it, but where both share the key.
fn disorder(holds: &[Hold]) -> Vec<Overlap> {
    let mut greatest: BTreeMap<(&str, bool), &Hold> = BTreeMap::new();
    let mut disorder = Vec::new();
    for hold in holds {
        // A holder that downgrades its lease keeps its token.
        let is_downgraded = |before: &Hold| {
            before.token == hold.token && before.owner.0 == hold.owner.0 && hold.is_shared
        };
        let before = |is_shared: bool| {
            let before = greatest.get(&(&*hold.key, is_shared)).copied();
            let before = before.filter(|before| before.token >= hold.token);
            before.filter(|before| !(is_downgraded(before) || is_shared && hold.is_shared))
        };
        if let Some(before) = before(false).or_else(|| before(true)) {
            disorder.push(Overlap {
                first: before.clone(),
                second: hold.clone(),
            });
            continue;
        }
        let greatest = greatest.entry((&hold.key, hold.is_shared)).or_insert(hold);
        if hold.token > greatest.token {
            *greatest = hold;
        }
    }
    disorder
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write};

    use crate::{HistoryWriter, Moment};

    use super::*;

    fn event(at: u64, moment: Moment, key: &str, process: u32, lease: u64) -> Event {
        let at = Duration::from_nanos(at);
        Event {
            at,
            until: at + Duration::from_nanos(1_000),
            moment,
            key: key.to_owned(),
            process,
            lease,
            token: lease,
            is_shared: false,
        }
    }

    /// A hold of a lease with the number `from`.
    fn hold(process: u32, key: &str, from: u64, to: u64) -> [Event; 2] {
        [
            event(from, Moment::Acquired, key, process, from),
            event(to, Moment::Releasing, key, process, from),
        ]
    }

    fn found(events: &[[Event; 2]]) -> usize {
        overlaps(&holds(&events.concat())).len()
    }

    #[test]
    fn holds_that_follow_each_other_are_fine() {
        assert_eq!(
            found(&[hold(1, "a", 0, 5), hold(2, "a", 5, 9), hold(1, "a", 10, 12)]),
            0
        );
    }

    #[test]
    fn an_overlap_by_a_nanosecond_is_found() {
        assert_eq!(found(&[hold(1, "a", 0, 5), hold(2, "a", 4, 9)]), 1);
        assert_eq!(found(&[hold(2, "a", 4, 9), hold(1, "a", 0, 5)]), 1);
    }

    #[test]
    fn an_overlap_within_one_process_is_found() {
        assert_eq!(found(&[hold(1, "a", 0, 5), hold(1, "a", 4, 9)]), 1);
    }

    #[test]
    fn a_hold_inside_a_long_one_is_found_though_others_lie_between() {
        let events = [
            hold(1, "a", 0, 100),
            hold(2, "a", 10, 20),
            hold(3, "a", 50, 60),
        ];
        assert_eq!(found(&events), 2);
    }

    #[test]
    fn different_keys_may_be_held_at_once() {
        assert_eq!(found(&[hold(1, "a", 0, 5), hold(2, "b", 0, 5)]), 0);
    }

    #[test]
    fn what_is_done_after_a_lease_ended_is_no_hold() {
        let mut paused = hold(1, "a", 0, 500);
        paused[1].until = paused[1].at;
        assert_eq!(found(&[paused.clone(), hold(2, "a", 300, 400)]), 0);
        paused[1].until += Duration::from_nanos(1);
        assert_eq!(found(&[paused, hold(2, "a", 300, 400)]), 1);
    }

    #[test]
    fn a_token_that_is_not_greater_than_the_one_before_is_found() {
        let mut holds =
            holds(&[hold(1, "a", 0, 5), hold(2, "a", 7, 9), hold(1, "b", 1, 2)].concat());
        assert_eq!(disorder(&holds), []);
        let later = holds.iter_mut().find(|hold| hold.from.as_nanos() == 7);
        later.expect("it is there").token = 0;
        assert_eq!(disorder(&holds).len(), 1);
    }

    /// The same hold, of a key that is shared.
    fn shares(mut hold: [Event; 2]) -> [Event; 2] {
        for event in &mut hold {
            event.is_shared = true;
        }
        hold
    }

    #[test]
    fn those_who_share_a_key_meet_each_other_and_nobody_who_has_it_alone() {
        let together = [
            shares(hold(1, "a", 0, 50)),
            shares(hold(2, "a", 10, 20)),
            shares(hold(3, "a", 15, 60)),
        ];
        assert_eq!(found(&together), 0);
        let mut meets = together.to_vec();
        meets.push(hold(4, "a", 55, 70));
        assert_eq!(found(&meets), 1);
        meets[3] = hold(4, "a", 60, 70);
        assert_eq!(found(&meets), 0);
        meets.push(shares(hold(1, "a", 69, 70)));
        assert_eq!(found(&meets), 1);
    }

    #[test]
    fn tokens_of_those_who_share_a_key_follow_that_of_whoever_had_it_alone() {
        let order = |events: &[[Event; 2]], tokens: &[u64]| {
            let mut holds = holds(&events.concat());
            for (hold, token) in holds.iter_mut().zip(tokens) {
                hold.token = *token;
            }
            disorder(&holds).len()
        };
        let events = [
            hold(1, "a", 0, 5),
            shares(hold(2, "a", 10, 20)),
            shares(hold(3, "a", 11, 20)),
            hold(4, "a", 30, 40),
        ];
        assert_eq!(order(&events, &[1, 3, 2, 4]), 0);
        assert_eq!(order(&events, &[1, 2, 2, 3]), 0, "they are in one process");
        assert_eq!(order(&events, &[1, 1, 2, 3]), 1);
        assert_eq!(order(&events, &[1, 3, 2, 3]), 1);
    }

    #[test]
    fn what_was_written_is_read_back_but_for_half_a_line() {
        let history = History::new();
        let path = history.file("one");
        let writer = HistoryWriter::open(&path).unwrap();
        let written = hold(1, "a", 1, 2);
        written.iter().for_each(|event| writer.write(event));
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"{\"at\":").unwrap();
        assert_eq!(history.events(), written);
        assert_eq!(history.assert_exclusive().len(), 1);
    }

    #[test]
    #[should_panic(expected = "1 of 2 holds overlap")]
    fn a_history_with_an_overlap_is_refused() {
        let history = History::new();
        for (process, from, to) in [(1, 0, 5), (2, 4, 9)] {
            let writer = HistoryWriter::open(&history.file(&process.to_string())).unwrap();
            hold(process, "a", from, to)
                .iter()
                .for_each(|event| writer.write(event));
        }
        history.assert_exclusive();
    }
}
