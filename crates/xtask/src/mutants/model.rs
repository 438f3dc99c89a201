//! Rules that the models of fencing tokens, of claims, of leases and of lines break by themselves when they are told to.
//!
//! They stand for what no function of the protocol holds alone, so there is no line to change.

/// A rule that is broken.
#[derive(Debug)]
pub(super) struct Mutation {
    /// As the model calls it.
    pub(super) name: &'static str,
    /// The world where it shows, as the model is told of it: the smallest that will do.
    pub(super) world: &'static str,
    /// Why tokens keep their order all the same, if they do: then that is what must come out.
    pub(super) harmless: Option<&'static str>,
}

pub(super) const MODEL: &[Mutation] = &[
    breaks("no-write-back", NO_CRASH),
    breaks("write-back-without-key", NO_CRASH),
    breaks("write-back-uncounted", NO_CRASH),
    breaks("late-vote-unbounded", NO_CRASH),
    breaks("no-seed", ONE_CRASH),
    breaks("seed-early", ONE_CRASH),
    breaks("no-increment", NO_CRASH),
    breaks("minimum-token", NO_CRASH),
    breaks("quarantined-votes", ONE_CRASH),
    breaks("degraded-floor", TWO_CRASHES),
    breaks("floor-unread", TWO_CRASHES),
    Mutation {
        name: "raise-without-key",
        world: ONE_CRASH,
        harmless: Some("a counter that is too high only makes later tokens greater"),
    },
    Mutation {
        name: "vote-confirms",
        world: ONE_CRASH,
        harmless: Some("a vote with the token has stored it while the key was the lease's"),
    },
    breaks("watermark-not-committed", NO_LOSS),
    breaks("commit-before-majority", NO_LOSS),
    breaks("commit-uncounted", ONE_LOSS),
    breaks("started-and-withdrawn", NO_LOSS),
    breaks("newest-withdrawn", "--claims --claimants 3 --crashes 0"),
    breaks("horizon-ignored", ONE_LOSS),
    breaks("horizon-of-the-telling", "--claims --crashes 1 --strays"),
    breaks("quarantined-claims", ONE_LOSS),
    breaks("early-differs", "--claims --crashes 1 --longer"),
    breaks("clock-set-back", ONE_LOSS),
    breaks(
        "alone-after-a-downgrade",
        "--leases --roles writer-then-reader,reader --crashes 0",
    ),
    breaks("key-ends-before-its-lease", "--leases --crashes 0"),
    breaks("quarantined-grants", "--leases --crashes 1"),
    breaks("quarantine-too-short", "--leases --crashes 1"),
    breaks("no-floor-for-readers", "--leases --crashes 1"),
    breaks(
        "no-write-back-of-readers",
        "--leases --roles writer,reader,reader --crashes 0",
    ),
    breaks("window-from-the-message", PLAIN_LINE),
    breaks("given-in-quarantine", "--lines --plain --crashes 1"),
    breaks("old-owner-revived", PLAIN_LINE),
    breaks("entry-kept-after-gift", PLAIN_LINE),
    breaks("first-gives-back", PLAIN_LINE),
    breaks("sign-not-looked-at", "--lines"),
    breaks("dead-head-not-skipped", "--lines"),
];

const NO_CRASH: &str = "--crashes 0";
const ONE_CRASH: &str = "--crashes 1";
const TWO_CRASHES: &str = "--crashes 2";
const NO_LOSS: &str = "--claims --crashes 0";
const ONE_LOSS: &str = "--claims --crashes 1";
const PLAIN_LINE: &str = "--lines --plain";

const fn breaks(name: &'static str, world: &'static str) -> Mutation {
    Mutation {
        name,
        world,
        harmless: None,
    }
}
