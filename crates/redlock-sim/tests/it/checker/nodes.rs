//! Nodes: when they may vote, and what they must not do.

use redlock_sim::Event;

use crate::checker::{NOTHING, ms, names, opened};

#[test]
fn a_node_that_votes_too_soon_is_found() {
    let (forgot, voted) = (Event::Forgot { node: 3 }, Event::Voted { node: 3 });
    let history = |at| [(10, forgot.clone()), (at, opened(3)), (at, voted.clone())];
    assert_eq!(names(&history(109)), ["EarlyVote"]);
    assert_eq!(names(&history(110)), NOTHING);
    let untold = [(10, forgot.clone()), (200, voted.clone())];
    assert_eq!(names(&untold), ["EarlyVote"]);
    let other = [(10, Event::Forgot { node: 2 }), (11, voted.clone())];
    assert_eq!(names(&other), NOTHING);
}

/// It had no vote to forget: those before its first loss are over.
#[test]
fn a_node_that_loses_data_again_before_it_votes_need_not_wait_for_longer() {
    let forgot = Event::Forgot { node: 3 };
    let voted = Event::Voted { node: 3 };
    let unopened = [
        (10, forgot.clone()),
        (90, forgot.clone()),
        (110, opened(3)),
        (110, voted.clone()),
    ];
    assert_eq!(names(&unopened), NOTHING);
    let opened_meanwhile = [
        (10, forgot.clone()),
        (110, opened(3)),
        (190, forgot),
        (200, opened(3)),
        (200, voted),
    ];
    assert_eq!(names(&opened_meanwhile), ["EarlyVote"]);
}

#[test]
fn what_nodes_must_not_do_is_found() {
    let healed = |confirmed| Event::Healed { node: 1, confirmed };
    assert_eq!(names(&[(1, healed(false))]), ["UnconfirmedHeal"]);
    assert_eq!(names(&[(1, healed(true))]), NOTHING);
    let found = Event::KeyFound {
        node: 1,
        key: 0,
        due: ms(5),
    };
    assert_eq!(names(&[(6, found.clone())]), ["KeyLeft"]);
    assert_eq!(names(&[(5, found)]), NOTHING);
}
