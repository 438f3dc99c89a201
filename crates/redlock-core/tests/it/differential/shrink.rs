//! The shortest sequence that still shows a difference, as far as it is cheap to find.

use crate::differential::{look::Difference, site::Site, step::Step, tally::Tally, world::World};
use redlock_sandbox::Persistence;

/// A sequence on which the two sides differ, and how.
pub(crate) struct Failure {
    pub(crate) steps: Vec<Step>,
    pub(crate) difference: Difference,
}

/// Goes through a sequence, up to where the sides differ.
pub(crate) async fn run(
    site: &mut Site,
    persistence: Persistence,
    seed: u64,
    steps: &[Step],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut world = World::begin(site, persistence, seed, tally).await;
    for (number, step) in steps.iter().enumerate() {
        if let Err(difference) = world.step(step).await {
            let steps = steps[..=number].to_vec();
            return Err(Failure { steps, difference });
        }
    }
    Ok(())
}

/// Leaves steps out, and then requests of calls, as long as the sides still differ.
pub(crate) async fn shrink(
    site: &mut Site,
    persistence: Persistence,
    seed: u64,
    mut failure: Failure,
) -> Failure {
    let mut unused = Tally::default();
    let mut tries = TRIES;
    let mut cut = failure.steps.len() / 2;
    while cut > 0 {
        let mut from = 0;
        while from < failure.steps.len() && tries > 0 {
            tries -= 1;
            let mut shorter = failure.steps.clone();
            shorter.drain(from..(from + cut).min(failure.steps.len()));
            match run(site, persistence, seed, &shorter, &mut unused).await {
                Err(still) => failure = still,
                Ok(()) => from += cut,
            }
        }
        cut /= 2;
    }
    let mut at = 0;
    while at < failure.steps.len() {
        let mut ask = 0;
        while tries > 0 {
            let mut shorter = failure.steps.clone();
            match &mut shorter[at] {
                Step::Call { asks, .. } if ask < asks.len() => drop(asks.remove(ask)),
                _ => break,
            }
            tries -= 1;
            match run(site, persistence, seed, &shorter, &mut unused).await {
                Err(still) if still.steps.len() == failure.steps.len() => failure = still,
                _ => ask += 1,
            }
        }
        at += 1;
    }
    failure
}

const TRIES: u32 = 400;
