//! The text of a mark, which a server has under one key of its own.

use crate::{Keyspace, NamedMark, Roll};

/// A mark, read from its text.
///
/// It is `voting` or `quarantined`, the run, the identity of its data, the policy, and for a server that others name the
/// epoch and the roll.
/// A quarantine has three numbers more: its beginning, how much of it is over, and when that was last looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Mark<'a> {
    word: &'a str,
    /// The run of the server.
    pub run: &'a str,
    /// The identity of the data.
    pub data: &'a str,
    policy: &'a str,
    term: Option<NamedMark>,
    quarantine: Option<[&'a str; 3]>,
}

impl<'a> Mark<'a> {
    /// Reads a mark; `None` if it is damaged.
    pub fn read(text: &'a str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let (head, rest) = words.split_at_checked(4)?;
        let &[word, run, data, policy] = head else {
            return None;
        };
        let (term, quarantine) = match (word, rest) {
            (VOTING, []) => (None, None),
            (VOTING, [epoch, roll]) => (Some([epoch, roll]), None),
            (QUARANTINED, [since, aged, last]) => (None, Some([*since, *aged, *last])),
            (QUARANTINED, [epoch, roll, since, aged, last]) => {
                (Some([epoch, roll]), Some([*since, *aged, *last]))
            }
            _ => return None,
        };
        let term = match term {
            Some([epoch, roll]) => Some(NamedMark {
                epoch: epoch.parse().ok()?,
                roll: Roll::read(roll)?,
            }),
            None => None,
        };
        Some(Self {
            word,
            run,
            data,
            policy,
            term,
            quarantine,
        })
    }

    /// Returns whether the node votes by it.
    pub fn votes(&self) -> bool {
        self.word == VOTING
    }

    /// Returns whether it is of this policy, and of the epoch of this session if others name the server.
    ///
    /// The rolls may differ: a roll that was the mark's once is safe to go by.
    pub fn is_of(&self, keyspace: &Keyspace) -> bool {
        let epoch = |term: &NamedMark| term.epoch;
        self.has_policy_of(keyspace) && self.term.as_ref().map(epoch) == keyspace.term().map(epoch)
    }

    /// Returns whether it is of this policy.
    pub fn has_policy_of(&self, keyspace: &Keyspace) -> bool {
        let policy = keyspace.policy().split(' ').next();
        policy == Some(self.policy)
    }

    /// Returns the epoch under which the server votes, and its roll, if others name it.
    pub const fn term(&self) -> Option<&NamedMark> {
        self.term.as_ref()
    }

    /// Returns its text with another roll; `None` if no others name the server.
    pub fn with_roll(&self, roll: &Roll) -> Option<String> {
        let Self {
            word,
            run,
            data,
            policy,
            ..
        } = self;
        let epoch = self.term.as_ref()?.epoch;
        let mut text = format!("{word} {run} {data} {policy} {epoch} {roll}");
        for number in self.quarantine.iter().flatten() {
            text.push(' ');
            text.push_str(number);
        }
        Some(text)
    }
}

/// The first word of a mark by which a node votes.
pub(super) const VOTING: &str = "voting";

/// That of one by which it does not.
pub(super) const QUARANTINED: &str = "quarantined";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{InformantId, Quarantine};

    fn keyspace(epoch: Option<u64>) -> Keyspace {
        let keyspace = Keyspace::new("{t}", Quarantine::new(Duration::from_secs(30), 0.01));
        let roll = Roll::new(3, [1, 2].map(InformantId::new));
        match epoch {
            Some(epoch) => keyspace.in_term(NamedMark { epoch, roll }),
            None => keyspace,
        }
    }

    #[test]
    fn a_mark_is_of_one_policy_and_one_epoch() {
        let text = format!("voting 0f aa {}", keyspace(Some(7)).policy());
        let mark = Mark::read(&text).unwrap();
        assert!(mark.votes() && mark.is_of(&keyspace(Some(7))));
        for other in [Some(6), Some(8), None] {
            assert!(!mark.is_of(&keyspace(other)), "{other:?}");
        }
        let plain = format!("quarantined 0f aa {} 5 6 7", keyspace(None).policy());
        let mark = Mark::read(&plain).unwrap();
        assert!(!mark.votes() && mark.is_of(&keyspace(None)));
        assert_eq!(mark.with_roll(&Roll::new(1, [])), None);
    }

    #[test]
    fn a_roll_is_replaced_and_nothing_else() {
        let text = "quarantined 0f aa 1ms,1ppm,v4 7 3:0000000000000001 5 6 7";
        let mark = Mark::read(text).unwrap();
        let roll = Roll::new(3, [1, 2].map(InformantId::new));
        let changed = mark.with_roll(&roll).unwrap();
        let expected = "quarantined 0f aa 1ms,1ppm,v4 7 3:0000000000000001,0000000000000002 5 6 7";
        assert_eq!(changed, expected);
    }

    #[test]
    fn what_no_node_writes_is_damaged() {
        for text in [
            "",
            "voting 0f aa",
            "voting 0f aa p 7",
            "voting 0f aa p x 3:0000000000000001",
            "voting 0f aa p 7 3",
            "voting 0f aa p 5 6 7",
            "quarantined 0f aa p 7 3:0000000000000001",
            "vetoing 0f aa p",
        ] {
            assert_eq!(Mark::read(text), None, "{text}");
        }
    }
}
