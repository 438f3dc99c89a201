//! The search for a floor where nodes share servers.

use std::num::NonZeroUsize;

use redlock_proto::{Counters, Floor, Quorum, Survey};

const KEPT: Counters = Counters::Kept;
const LOST: Counters = Counters::Lost;
const UNKNOWN: Counters = Counters::Unknown;

/// Returns the survey for node 0 of as many nodes, each by its run and what it has; a node without these has failed.
///
/// The greatest counter of each node is its number.
fn survey(nodes: &[Option<(&str, Counters)>]) -> Survey {
    survey_of_moved(nodes, &[])
}

fn survey_of_moved(nodes: &[Option<(&str, Counters)>], moved: &[usize]) -> Survey {
    let quorum = Quorum::of(NonZeroUsize::new(nodes.len()).unwrap());
    let mut survey = Survey::start(quorum, 0);
    for (node, read) in nodes.iter().enumerate() {
        match read {
            Some((run, counters)) => {
                let greatest = u64::try_from(node).unwrap();
                survey.on_reading(node, (*run).into(), *counters, greatest);
            }
            None => survey.on_failure(node),
        }
    }
    for node in moved {
        survey.on_moved(*node);
    }
    survey
}

// Shows: L3.5, L3.7.
#[test]
fn a_duplicate_counts_as_lost_where_the_survey_asks_what_could_still_come() {
    let (lost, kept) = (Some(("a", LOST)), Some(("b", KEPT)));
    let degraded = Some(Floor::Degraded(2));
    assert_eq!(survey(&[lost, kept, kept]).floor(), degraded);
    let (other, unknown) = (Some(("c", KEPT)), Some(("b", UNKNOWN)));
    assert_eq!(survey(&[lost, kept, unknown]).floor(), degraded);
    assert_eq!(survey(&[lost, lost, kept]).floor(), degraded);
    // Without the duplicate, another node may come.
    assert_eq!(survey(&[lost, kept, None]).floor(), None);
    let five = [lost, kept, kept, other, None];
    assert_eq!(survey(&five).floor(), None, "the last node may come");
    let five = [lost, kept, kept, kept, other];
    assert_eq!(survey(&five).floor(), Some(Floor::Degraded(4)));
    // A node that is away could not complete a majority, but the servers that were read are too few.
    assert_eq!(survey(&[lost, kept, kept, kept, None]).floor(), None);
}

// Shows: L3.4.
#[test]
fn a_server_counts_once_by_the_node_that_kept_its_counters() {
    let (own, other) = (Some(("a", LOST)), Some(("c", KEPT)));
    let two_votes_of_a_cluster = [own, Some(("b", LOST)), Some(("b", KEPT))];
    assert_eq!(
        survey(&two_votes_of_a_cluster).floor(),
        Some(Floor::Degraded(2))
    );
    let five = [
        own,
        Some(("b", LOST)),
        Some(("b", KEPT)),
        other,
        Some(("d", KEPT)),
    ];
    assert_eq!(survey(&five).floor(), Some(Floor::Known(4)));
    let twice = [own, other, other, other, Some(("d", KEPT))];
    assert_ne!(
        survey(&twice).floor(),
        Some(Floor::Known(4)),
        "these are two"
    );
}

/// Its own server may come back to an address that leads to another one for a while.
// Shows: L3.4.
#[test]
fn a_duplicate_that_was_another_server_is_waited_for() {
    let (lost, kept) = (Some(("a", LOST)), Some(("b", KEPT)));
    for moved in [1, 2] {
        assert_eq!(survey_of_moved(&[lost, kept, kept], &[moved]).floor(), None);
    }
    for moved in [0, 1] {
        assert_eq!(survey_of_moved(&[lost, lost, kept], &[moved]).floor(), None);
    }
    // Unless its counters are others than those of the vote beside it, and it has lost them.
    let in_quarantine = Some(("b", LOST));
    for nodes in [[lost, kept, in_quarantine], [lost, in_quarantine, kept]] {
        let floor = survey_of_moved(&nodes, &[1, 2]).floor();
        assert_eq!(floor, Some(Floor::Degraded(2)));
    }
}
