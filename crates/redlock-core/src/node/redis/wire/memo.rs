//! The requests that were encoded last, for the other nodes that are sent the same.

use std::sync::Arc;

use redlock_proto::{Keyspace, Lock, Verb};

use super::{encoded::Encoded, request::encode};
use crate::node::Request;

/// The last requests for locks, as they are sent.
///
/// All nodes are asked the same, so one of them pays.
/// A lock has one place, which it may have in common with others: the last one that was asked for is there.
/// It is of one keyspace, because its keys are.
#[derive(Default)]
pub(super) struct Memo {
    places: Vec<Place>,
    /// A request that is for no lock.
    other: Encoded,
}

#[derive(Default)]
struct Place {
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
            self.places.resize_with(PLACES, Place::default);
        }
        let Place { of, encoded } = &mut self.places[place_of(lock)];
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
