//! Rules that the model of fencing tokens breaks by itself when it is told to.
//!
//! They stand for what no function of the protocol holds alone, so there is no line to change.

/// A rule that is broken.
#[derive(Debug)]
pub(super) struct Mutation {
    /// As the model calls it.
    pub(super) name: &'static str,
    /// How often nodes lose their memory in the world where it shows: the least that will do.
    pub(super) crashes: &'static str,
    /// Why tokens keep their order all the same, if they do: then that is what must come out.
    pub(super) harmless: Option<&'static str>,
}

pub(super) const MODEL: &[Mutation] = &[
    breaks("no-write-back", "0"),
    breaks("write-back-without-key", "0"),
    breaks("write-back-uncounted", "0"),
    breaks("no-seed", "1"),
    breaks("seed-early", "1"),
    breaks("no-increment", "0"),
    breaks("minimum-token", "0"),
    breaks("quarantined-votes", "1"),
    breaks("degraded-floor", "2"),
    breaks("floor-unread", "2"),
    Mutation {
        name: "raise-without-key",
        crashes: "1",
        harmless: Some("a counter that is too high only makes later tokens greater"),
    },
    Mutation {
        name: "vote-confirms",
        crashes: "1",
        harmless: Some("a vote with the token has stored it while the key was the lease's"),
    },
];

const fn breaks(name: &'static str, crashes: &'static str) -> Mutation {
    Mutation {
        name,
        crashes,
        harmless: None,
    }
}
