//! A key as all nodes together have it.

use std::time::Duration;

use redlock_core::NodeReport;
use redlock_proto::KeyVerdict;
use serde_json::{Value, json};

use super::{
    clock::{lasting, millis, moment},
    lookup::{KeyLook, KeyState, Owner, line::Line},
};
use crate::snapshot::{KeyAnswer, KeyStanding};

/// What all nodes together say of a key.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeyStatus<'a> {
    /// Whether it is held; `None` if that cannot be said.
    pub is_held: Option<bool>,
    /// The owner on the most nodes.
    pub owner: Option<&'a Owner>,
    /// The number of these nodes.
    pub count: usize,
    /// How many of these nodes vote.
    pub votes: usize,
    /// After how long a majority is free again, unless the lease is renewed.
    pub remaining: Option<Duration>,
    /// The number of nodes that must have it.
    pub majority: usize,
    /// The callers in line; `None` if too few nodes have answered.
    pub line: Option<Line>,
    /// What each node says, and where it stands.
    pub nodes: Vec<(&'a KeyLook, &'a NodeReport)>,
}

impl<'a> KeyStatus<'a> {
    /// Returns what nodes say of a key together, each of which has a report.
    pub fn of(said: &'a [KeyLook], reports: &'a [NodeReport], majority: usize) -> Self {
        // Two looks name one owner if their values are equal.
        let first = |owner: &Owner| said.iter().position(|said| said.owner() == Some(owner));
        let nodes: Vec<_> = said.iter().zip(reports).collect();
        let answers = nodes.iter().map(|(said, report)| {
            let owners = match &said.state {
                KeyState::Free => Some(Vec::new()),
                KeyState::Held(owner, left) => {
                    Some(vec![(first(owner), left.unwrap_or(Duration::MAX))])
                }
                KeyState::Unknown(_) => None,
            };
            (owners, &report.answer)
        });
        let verdict = KeyVerdict::of(answers, majority);
        let count = |owner: &&Owner| {
            let with_key = said.iter().filter(|said| said.owner() == Some(*owner));
            with_key.count()
        };
        let owners = said.iter().filter_map(KeyLook::owner);
        let owner = match verdict {
            KeyVerdict::Held { owner, .. } => owner.and_then(|first| said[first].owner()),
            _ => owners.max_by_key(count),
        };
        let has_it = |said: &KeyLook| owner.is_some() && said.owner() == owner;
        let with_key = nodes.iter().filter(|(said, _)| has_it(said));
        let voting = with_key.clone().filter(|(_, report)| report.answer.votes());
        let answered = said.iter().filter(|said| said.is_known()).count();
        Self {
            is_held: match verdict {
                KeyVerdict::Held { .. } => Some(true),
                KeyVerdict::Free => Some(false),
                KeyVerdict::Unknown => None,
            },
            owner,
            count: with_key.count(),
            votes: voting.count(),
            remaining: match verdict {
                KeyVerdict::Held { remaining, .. } => Some(remaining),
                _ => None,
            },
            majority,
            line: (answered >= majority).then(|| Line::of(said, majority)),
            nodes,
        }
    }

    /// Returns what all nodes together say, in words.
    pub fn verdict(&self) -> String {
        let (count, nodes, majority) = (self.count, self.nodes.len(), self.majority);
        match (self.is_held, self.owner) {
            (Some(true), Some(owner)) => {
                let holder = owner.holder();
                let since = owner
                    .since()
                    .map(|since| format!(" since {}", moment(since)));
                let since = since.unwrap_or_default();
                let left = match self.remaining {
                    Some(Duration::MAX) => ", for ever".to_owned(),
                    Some(left) => format!(", {} unless renewed", lasting(Some(left))),
                    None => String::new(),
                };
                format!("held by {holder}{since}, {count} of {nodes} nodes{left}")
            }
            (Some(_), _) => "free: no majority of the nodes has it".to_owned(),
            (None, None) => format!(
                "unknown: no node that has answered has it, and fewer than {majority} of these vote"
            ),
            (None, Some(_)) => format!(
                "unknown: {count} of {nodes} nodes have it for one holder, and {} of these vote; {majority} that vote \
                 would be a majority",
                self.votes
            ),
        }
    }

    /// Returns whether it is held, for programs.
    pub const fn state(&self) -> KeyStanding {
        standing(self.is_held)
    }

    /// Returns what each node says, for programs.
    pub fn answers(&self) -> Vec<KeyAnswer> {
        let answers = self.nodes.iter().map(|(said, report)| {
            let votes = report.answer.votes();
            let (is_held, left, why) = match &said.state {
                KeyState::Free if votes => (Some(false), None, None),
                KeyState::Free => (None, None, Some(report.answer.to_string())),
                KeyState::Held(_, left) => {
                    let why = (!votes).then(|| report.answer.to_string());
                    (Some(true), *left, why)
                }
                KeyState::Unknown(why) => (None, None, Some(why.clone())),
            };
            KeyAnswer {
                node: report.node.to_string(),
                server: report.server().map(str::to_owned),
                state: standing(is_held),
                holder: said.owner().and_then(Owner::shown),
                remaining_ms: left.map(millis),
                votes,
                why,
            }
        });
        answers.collect()
    }

    /// Returns the owner, if a majority has the key for it: nodes without a vote say nothing of a holder.
    pub fn holder(&self) -> Option<&Owner> {
        self.owner.filter(|_| self.is_held == Some(true))
    }

    /// Returns it for programs.
    pub fn to_json(&self) -> Value {
        let remaining = self.remaining.filter(|left| *left != Duration::MAX);
        let holder = self.holder();
        json!({
            "state": self.state(),
            "holder": holder.and_then(Owner::shown),
            // Since 1970, by the holder's clock.
            "held_since_ms": holder.and_then(Owner::since).map(millis),
            "nodes_with_key": self.count,
            "votes": self.votes,
            "majority": self.majority,
            "remaining_ms": remaining.map(millis),
            "line": self.line.as_ref().map(|line| line.snapshot(usize::MAX)),
            // A caller waits to hold a shared key exclusively; it is not in line.
            "exclusive_awaited": holder.is_some_and(Owner::is_wished_for),
            "nodes": self.answers(),
        })
    }
}

/// Returns whether a key is held, as programs read it.
pub const fn standing(is_held: Option<bool>) -> KeyStanding {
    match is_held {
        Some(true) => KeyStanding::Held,
        Some(false) => KeyStanding::Free,
        None => KeyStanding::Unknown,
    }
}
