//! Two clients' state machines over the models of the nodes that they share, one event at a time.

mod bench;
mod claims;
mod clocks;
mod crowd;
mod deaths;
mod fan_out;
mod horizon;
mod lines;
mod overload;
mod reading;
mod refusals;
mod rounds;
mod seeding;
mod sets;
mod shared;
mod spread;
mod trouble;
mod turns;

use redlock_proto::{Effect, NotClaimed};

use crate::clients::bench::TTL;

/// How long a commit pauses, in milliseconds.
const PAUSE: u64 = TTL.as_millis() as u64 / 20;

/// Returns the only effect of a claim.
fn came_of(effects: &[Effect]) -> &Effect {
    let decides = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Acquired { .. } | Effect::NotClaimed { .. } | Effect::NotAcquired { .. }
        )
    };
    let mut decided = effects.iter().filter(decides);
    let first = decided.next().expect("it is decided");
    assert!(decided.next().is_none(), "it is decided once: {effects:?}");
    first
}

fn won(effects: &[Effect]) -> bool {
    matches!(came_of(effects), Effect::Acquired { .. })
}

fn refused(effects: &[Effect]) -> NotClaimed {
    match came_of(effects) {
        Effect::NotClaimed { why, .. } => why.clone(),
        other => panic!("{other:?}"),
    }
}
