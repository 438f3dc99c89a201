//! Calls as the script and the functions take them, with the requests that were encoded last.

use std::sync::{Arc, Mutex, PoisonError};

use redlock_proto::{Keyspace, Lock, NodeVerb, Quarantine, Verb};

use super::{
    super::{args::Args, functions},
    encoded::Encoded,
    request::encode,
    values::millis,
};
use crate::node::Request;

/// What makes calls out of requests; the nodes of a client share one, so that each request is encoded once.
#[derive(Default)]
pub(crate) struct Encoder(Mutex<CallParts>);

#[derive(Default)]
struct CallParts {
    memo: Memo,
    /// What all calls say of the quarantine, as it was last.
    policy: Option<(Quarantine, Args)>,
    /// The parts of a call, which are kept for the room that they have.
    keys: Args,
    hashes: Vec<u64>,
    counters: Vec<u16>,
    args: Args,
}

impl Encoder {
    /// Returns a call with these requests, behind its head, which says by what they are done.
    ///
    /// They are in the order that is wanted, unless a key occurs twice.
    pub(in super::super) fn call(
        &self,
        head: [&str; 2],
        keyspace: &Keyspace,
        requests: &[Request],
        wanted: Order,
    ) -> Packed {
        // What was left by a panic is cleared first.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.gather(keyspace, wanted.of(requests));
        let (mut order, has_twins) = (wanted, have_twins(&mut state.hashes));
        if has_twins && wanted != Order::Given {
            order = Order::Given;
            state.gather(keyspace, requests.iter());
        }
        let args = state.call(head, keyspace, requests, has_twins);
        Packed { args, order }
    }
}

/// A call as it is sent.
pub(in super::super) struct Packed {
    pub(in super::super) args: Args,
    /// In which order it has the requests.
    pub(in super::super) order: Order,
}

impl CallParts {
    /// Puts the parts of all requests together.
    fn gather<'r>(&mut self, keyspace: &Keyspace, requests: impl Iterator<Item = &'r Request>) {
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
        if !requests.is_empty() && requests.iter().all(Request::is_release) {
            call.push("").push("");
        } else {
            call.append(self.policy(*keyspace.quarantine()));
        }
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
    fn policy(&mut self, quarantine: Quarantine) -> &Args {
        let known = self.policy.take().filter(|(known, _)| *known == quarantine);
        let (_, policy) = self.policy.insert(known.unwrap_or_else(|| {
            let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
            let trusts = u8::from(quarantine.trusts_persistence());
            let delays = u8::from(quarantine.trusts_delayed_restarts());
            let mut policy = Args::default();
            policy
                .push(quarantine.to_wire())
                .push(format!("{length} {step} {trusts} {delays}"));
            (quarantine, policy)
        }));
        policy
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

/// The order in which a call has its requests, and its answer the replies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Order {
    /// As they were asked for.
    Given,
    /// Those that take a key, and behind them all others: so functions, which do most calls, need not look what each is.
    ///
    /// It is the same to a node if no key occurs twice.
    AcquiresFirst,
}

impl Order {
    /// Returns requests in this order.
    pub(super) fn of(self, requests: &[Request]) -> impl Iterator<Item = &Request> {
        let is_first = move |request: &Request| self.is_first(request);
        let first = requests.iter().filter(move |request| is_first(request));
        let behind = requests.iter().filter(move |request| !is_first(request));
        first.chain(behind)
    }

    /// Returns what belongs to requests in this order as it belongs to them as they were asked for.
    pub(super) fn undo<T>(self, mut parts: Vec<T>, requests: &[Request]) -> Vec<T> {
        if self == Self::Given {
            return parts;
        }
        let firsts = requests.iter().filter(|request| self.is_first(request));
        let mut behind = parts.split_off(firsts.count()).into_iter();
        let mut first = parts.into_iter();
        let parts = requests.iter().map(|request| match self.is_first(request) {
            true => first.next(),
            false => behind.next(),
        });
        parts.flatten().collect()
    }

    fn is_first(self, request: &Request) -> bool {
        self == Self::Given || functions::takes(request)
    }
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

#[cfg(test)]
mod tests {
    use super::{
        super::super::fixtures::{RELEASE, acquire, extend, lock},
        *,
    };

    // Shows: R2.12.
    #[test]
    fn what_was_put_in_order_is_as_it_was_given_once_that_is_undone() {
        let requests = [lock(RELEASE), acquire(1), extend(None), acquire(2)];
        for (order, expected) in [
            (Order::Given, [0, 1, 2, 3]),
            (Order::AcquiresFirst, [1, 3, 0, 2]),
        ] {
            let sent: Vec<&Request> = order.of(&requests).collect();
            assert_eq!(sent, expected.map(|place| &requests[place]));
            assert_eq!(order.undo(expected.to_vec(), &requests), [0, 1, 2, 3]);
        }
    }
}
