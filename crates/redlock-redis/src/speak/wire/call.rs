//! Calls as the script takes them, with the requests that were encoded last.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use redlock_proto::{Keyspace, Lock, NodeKey, NodeVerb, Quarantine, Request, Verb};

use super::{super::args::Args, encoded::Encoded, request::encode, values::millis};

/// The encoder of requests as calls; the nodes of a client share one, so that each request is encoded once.
#[derive(Default)]
pub struct Encoder {
    /// The keyspace of the node, if it has keys of its own there.
    own: Option<Arc<Keyspace>>,
    parts: Mutex<CallParts>,
}

#[derive(Default)]
struct CallParts {
    memo: Memo,
    /// What all calls say of the quarantine, as it was last.
    quarantine: Option<(Quarantine, Args)>,
    /// The parts of a call, which are kept for the room that they have.
    keys: Args,
    hashes: Vec<u64>,
    counters: Vec<u16>,
    args: Args,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    /// Makes the encoder of a node that has its keys under this hash tag.
    pub(crate) fn under(tag: &str, keyspace: &Keyspace) -> Self {
        Self {
            own: Some(Arc::new(keyspace.under(tag))),
            parts: Mutex::default(),
        }
    }

    /// Returns whether another node may have the same.
    pub(crate) const fn is_for_all(&self) -> bool {
        self.own.is_none()
    }

    /// Returns the keyspace of the node, for a client with that one.
    pub(crate) fn keyspace<'a>(&'a self, of_client: &'a Arc<Keyspace>) -> &'a Arc<Keyspace> {
        self.own.as_ref().unwrap_or(of_client)
    }

    /// Returns the parts of which a resource's key consists on the node.
    pub(crate) fn parts_of<'a>(&'a self, key: &'a NodeKey) -> [&'a str; 2] {
        match &self.own {
            Some(keyspace) => keyspace.parts_of(key),
            None => ["", key.as_str()],
        }
    }

    /// Returns a call with these requests, behind its head, which says by what they are done.
    ///
    /// A key may occur twice.
    pub(crate) fn call(&self, head: [&str; 2], keyspace: &Keyspace, requests: &[Request]) -> Args {
        // What was left by a panic is cleared first.
        let mut state = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        state.gather(keyspace, requests);
        let has_twins = have_twins(&mut state.hashes);
        state.call(head, keyspace, requests, has_twins)
    }
}

impl CallParts {
    /// Puts the parts of all requests together.
    fn gather(&mut self, keyspace: &Keyspace, requests: &[Request]) {
        self.keys.clear();
        self.hashes.clear();
        self.counters.clear();
        self.args.clear();
        for request in requests {
            let encoded = self.memo.encoded(keyspace, request);
            self.keys.append(&encoded.keys);
            self.hashes.extend(&encoded.hashes);
            self.counters.extend(&encoded.counters);
            self.args.append(&encoded.args);
        }
    }

    fn call(
        &mut self,
        head: [&str; 2],
        keyspace: &Keyspace,
        requests: &[Request],
        has_twins: bool,
    ) -> Args {
        let room = ROOM + head[1].len() + self.keys.bytes() + self.args.bytes();
        let mut call = Args::with_capacity(room + 8 * self.counters.len());
        for word in head {
            call.push(word);
        }
        call.push_number(2 + self.keys.len() as u64);
        call.push(keyspace.mark().as_str());
        call.append(&self.keys);
        call.push(keyspace.fence().as_str());
        let only_releases = !requests.is_empty() && requests.iter().all(Request::is_release);
        // With a minus, the call looks at the mark only if callers wait in line.
        call.push_parts([if only_releases { "-" } else { "" }, keyspace.policy()]);
        call.append(self.quarantine(*keyspace.quarantine()));
        call.push(match (has_twins, have_twins_of(&self.counters)) {
            (true, true) => "both",
            (true, false) => "keys",
            (false, true) => "counters",
            (false, false) => "",
        });
        if self.counters.is_empty() && !requests.iter().any(is_opening) {
            call.push_number(0);
        } else {
            call.push_number(1 + self.counters.len() as u64)
                .push("floor");
        }
        for counter in &self.counters {
            call.push_number((*counter).into());
        }
        call.append(&self.args);
        call
    }

    /// Returns what a call says of the quarantine.
    fn quarantine(&mut self, quarantine: Quarantine) -> &Args {
        let known = self.quarantine.take();
        let known = known.filter(|(known, _)| *known == quarantine);
        let (_, args) = self.quarantine.insert(known.unwrap_or_else(|| {
            let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
            let trusts = u8::from(quarantine.trusts_persistence());
            let mut args = Args::default();
            args.push(format!("{length} {step} {trusts}"));
            (quarantine, args)
        }));
        args
    }
}

fn is_opening(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

/// Returns whether two of these keys are the same; by chance also if they are not, which costs the node a little time.
fn have_twins(hashes: &mut [u64]) -> bool {
    hashes.sort_unstable();
    hashes.windows(2).any(|two| two[0] == two[1])
}

/// Returns whether two of a call's few counters are the same.
fn have_twins_of(counters: &[u16]) -> bool {
    let mut numbered = counters.iter().enumerate();
    numbered.any(|(number, counter)| counters[..number].contains(counter))
}

/// The last requests for locks, as they are sent.
///
/// All nodes are asked the same, so one of them pays.
/// A lock has one place, which it may have in common with others: the last one that was asked for is there.
/// It is of one keyspace, because its keys are.
#[derive(Default)]
pub(super) struct Memo {
    places: Vec<MemoPlace>,
    /// A request that is for no lock.
    other: Encoded,
}

#[derive(Default)]
struct MemoPlace {
    /// What is encoded there.
    // invariant: the lock is the same if its address is, because it is kept
    of: Option<(Verb, Arc<Lock>)>,
    encoded: Encoded,
}

impl Memo {
    /// Returns a request as it is sent.
    pub(super) fn encoded(&mut self, keyspace: &Keyspace, request: &Request) -> &Encoded {
        let Request::Lock { verb, lock } = request else {
            encode(keyspace, request, &mut self.other);
            return &self.other;
        };
        if self.places.is_empty() {
            self.places.resize_with(PLACES, MemoPlace::default);
        }
        let MemoPlace { of, encoded } = &mut self.places[place_of(lock)];
        let is_known = of
            .as_ref()
            .is_some_and(|(known, its)| Arc::ptr_eq(its, lock) && known == verb);
        if !is_known {
            *of = None;
            encode(keyspace, request, encoded);
            *of = Some((*verb, Arc::clone(lock)));
        }
        encoded
    }
}

/// Returns where a lock has its place.
fn place_of(lock: &Arc<Lock>) -> usize {
    // The golden ratio spreads addresses, which have their distances in common.
    let spread = (Arc::as_ptr(lock).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // invariant: there are as many places as these bits tell apart
    (spread >> (u64::BITS - BITS)) as usize
}

const BITS: u32 = 8;
const PLACES: usize = 1 << BITS;

/// As many bytes as a call has beside its head and its requests, as a rule.
const ROOM: usize = 256;
