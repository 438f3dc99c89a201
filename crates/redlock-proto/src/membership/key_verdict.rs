use std::{collections::BTreeMap, time::Duration};

use crate::NodeAnswer;

/// The verdict of a look at a key: the owner that a majority names, or that the key is free, or neither.
///
/// Only nodes that vote count.
/// A node that may have forgotten leases takes keys for attempts that win nothing, so its word names no holder; nor does
/// it say that a key is free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it is held, free, or not known")]
pub enum KeyVerdict<O> {
    /// A majority of the nodes votes and has the key for this owner.
    Held {
        /// The owner.
        owner: O,
        /// The time for which a majority still has the key; [`Duration::MAX`] if it never expires.
        remaining: Duration,
    },
    /// A majority of the nodes votes and does not have the key.
    Free,
    /// Neither is so.
    Unknown,
}

impl<O: Ord> KeyVerdict<O> {
    /// Returns the verdict of one answer of each node: the owners that have the key there, each with the time that it has
    /// left, or `None` if the node did not tell them; and the node's standing, asked after that.
    ///
    /// `majority` is the number of nodes that make one, as of [`Quorum::majority`](crate::Quorum::majority).
    pub fn of<'a, I>(answers: I, majority: usize) -> Self
    where
        I: IntoIterator<Item = (Option<Vec<(O, Duration)>>, &'a NodeAnswer)>,
    {
        Self::so_far(answers, majority, 0).unwrap_or(Self::Unknown)
    }

    /// Returns the [verdict](Self::of) of the answers so far; `None` if the nodes whose answers are `open` may change it.
    pub fn so_far<'a, I>(answers: I, majority: usize, open: usize) -> Option<Self>
    where
        I: IntoIterator<Item = (Option<Vec<(O, Duration)>>, &'a NodeAnswer)>,
    {
        let voting = answers.into_iter().filter(|(_, standing)| standing.votes());
        let mut named: BTreeMap<O, Vec<Duration>> = BTreeMap::new();
        let mut free = 0;
        for owners in voting.filter_map(|(owners, _)| owners) {
            free += usize::from(owners.is_empty());
            for (owner, left) in owners {
                named.entry(owner).or_default().push(left);
            }
        }
        let most = named.into_iter().max_by_key(|(_, times)| times.len());
        let most_named = most.as_ref().map_or(0, |(_, times)| times.len());
        match most {
            Some((owner, mut times)) if times.len() >= majority => {
                // The lease lasts for as long as a majority keeps the key.
                times.sort_unstable_by(|one, other| other.cmp(one));
                let remaining = times[majority - 1];
                Some(Self::Held { owner, remaining })
            }
            _ if free >= majority => Some(Self::Free),
            _ => (most_named.max(free) + open < majority).then_some(Self::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NotAVote;

    const QUARANTINED: NodeAnswer = NodeAnswer::NotAVote {
        reason: NotAVote::Quarantined {
            ready_in: Duration::ZERO,
        },
    };

    type Owners<'a> = Option<&'a [(&'static str, u64)]>;

    fn verdict(answers: &[(Owners<'_>, NodeAnswer)]) -> KeyVerdict<&'static str> {
        let owners = |owners_of: &[(&'static str, u64)]| {
            let owners = owners_of.iter();
            let owners = owners.map(|(owner, left)| (*owner, Duration::from_secs(*left)));
            owners.collect()
        };
        let majority = answers.len() / 2 + 1;
        let answers = answers.iter();
        let answers = answers.map(|(owners_of, standing)| (owners_of.map(owners), standing));
        KeyVerdict::of(answers, majority)
    }

    #[test]
    fn nodes_that_do_not_vote_name_no_holder_and_call_no_key_free() {
        let failing = NodeAnswer::Failing {
            reason: "out of memory".into(),
        };
        let (a, free): (Owners<'_>, Owners<'_>) = (Some(&[("a", 5)]), Some(&[]));
        let votes = NodeAnswer::Reachable;
        let held = KeyVerdict::Held {
            owner: "a",
            remaining: Duration::from_secs(5),
        };
        for (answers, expected) in [
            (
                [(a, votes.clone()), (a, votes.clone()), (free, QUARANTINED)],
                held,
            ),
            (
                [(a, votes.clone()), (a, failing), (free, votes.clone())],
                held,
            ),
            (
                [(a, votes.clone()), (a, QUARANTINED), (a, QUARANTINED)],
                KeyVerdict::Unknown,
            ),
            (
                [(a, QUARANTINED), (a, QUARANTINED), (a, QUARANTINED)],
                KeyVerdict::Unknown,
            ),
            (
                [
                    (free, votes.clone()),
                    (free, votes.clone()),
                    (a, QUARANTINED),
                ],
                KeyVerdict::Free,
            ),
            (
                [(free, votes.clone()), (free, QUARANTINED), (None, votes)],
                KeyVerdict::Unknown,
            ),
        ] {
            assert_eq!(verdict(&answers), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_lease_lasts_for_as_long_as_a_majority_has_it() {
        let shared: [&[_]; 3] = [&[("a", 1), ("b", 9)], &[("b", 7)], &[("b", 2), ("a", 3)]];
        let answers = shared.map(|owners| (Some(owners), NodeAnswer::Reachable));
        let (owner, remaining) = ("b", Duration::from_secs(7));
        assert_eq!(verdict(&answers), KeyVerdict::Held { owner, remaining });
    }

    #[test]
    fn a_verdict_comes_once_the_other_nodes_cannot_change_it() {
        let votes = NodeAnswer::Reachable;
        let (a, b) = (vec![("a", Duration::MAX)], vec![("b", Duration::MAX)]);
        let so_far = |owners_of: &[&Vec<_>], open| {
            let owners_of = owners_of
                .iter()
                .map(|owners| (Some((*owners).clone()), &votes));
            KeyVerdict::so_far(owners_of, 2, open)
        };
        let remaining = Duration::MAX;
        let held = KeyVerdict::Held {
            owner: "a",
            remaining,
        };
        assert_eq!(so_far(&[&a], 2), None);
        assert_eq!(so_far(&[&a, &a], 1), Some(held));
        assert_eq!(so_far(&[&a, &b], 1), None);
        assert_eq!(so_far(&[&a, &b], 0), Some(KeyVerdict::Unknown));
        assert_eq!(so_far(&[&a], 0), Some(KeyVerdict::Unknown));
    }
}
