//! The script that servers run, and the model of a node, answer alike.
//!
//! Random sequences of calls, faults and changes of the clock go to a real server, by way of the client's own
//! session, and to the model; the answers must be the same in every part, and now and then all else that can
//! be seen, and the messages to callers in line.
//!
//! What is left out, because a server does it when it has time: it removes expired keys that no call has asked for.
//! That is turned off. Both sides forget an expired key when a call names it, so that a clock which is set
//! back brings the others back on both; there are fewer keys than the model keeps before it looks for expired
//! ones by itself.
#![cfg(target_os = "linux")]

mod cast;
mod generate;
mod look;
mod messages;
mod random;
mod shrink;
mod site;
mod step;
mod tally;
mod world;

use std::env;

use redlock_sandbox::Persistence;

use crate::differential::{random::Random, shrink::Failure, site::Site, tally::Tally};

/// With `REDLOCK_SEED=7` the sequences begin with the seventh; with `REDLOCK_OPERATIONS=1000000` there are as
/// many as make up a million operations.
// Shows: E13, G1, R9.2.
#[tokio::test]
async fn the_script_and_the_model_answer_alike() {
    alike(false).await;
}

/// What is plain is done by transactions, on both sides.
// Shows: R2.3, R2.6.
#[tokio::test]
async fn transactions_and_the_model_answer_alike() {
    alike(true).await;
}

async fn alike(transacts: bool) {
    let seed = number("REDLOCK_SEED");
    let least = match (number("REDLOCK_OPERATIONS"), seed) {
        (Some(least), _) => least,
        (None, Some(_)) => 1,
        (None, None) => OPERATIONS,
    };
    let mut memory = Site::start(Persistence::Memory, transacts).await;
    let mut file = Site::start(Persistence::AppendOnly, transacts).await;
    let mut seed = seed.unwrap_or(0);
    let mut tally = Tally::default();
    while tally.operations < least {
        let (site, persistence) = match seed % 3 {
            2 => (&mut file, Persistence::AppendOnly),
            _ => (&mut memory, Persistence::Memory),
        };
        sequence(site, persistence, seed, &mut tally).await;
        seed += 1;
    }
    eprintln!("alike up to sequence {seed}: {tally:?}");
    if tally.operations >= OPERATIONS {
        tally.is_varied();
        assert_eq!(tally.transactions > least / 20, transacts);
    }
}

async fn sequence(site: &mut Site, persistence: Persistence, seed: u64, tally: &mut Tally) {
    let steps = generate::sequence(&mut Random::new(seed));
    let Err(failure) = shrink::run(site, persistence, seed, &steps, tally).await else {
        return;
    };
    let Failure { steps, difference } = shrink::shrink(site, persistence, seed, failure).await;
    let steps: String = steps.iter().map(|step| format!("  {step:?}\n")).collect();
    let difference = difference.0;
    panic!(
        "the script and the model differ: {difference}\nafter these steps, {persistence:?}:\n{steps}again with: REDLOCK_SEED={seed}"
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

const OPERATIONS: u64 = 36_000;
