/// The number of nodes that an acquire or a renewal asks at once.
///
/// Any strict majority of the nodes decides.
/// An acquire that asks only a majority saves work on the other nodes and in the client: two fifths of it if there are
/// five nodes.
/// An acquire that asks all nodes is faster, because the first answers decide.
/// Renewals lose nothing if they ask a majority, because no caller waits for them.
/// The nodes take turns then, so that all keep the key.
/// Claims of ticks, releases and extensions that a holder asks for go to all nodes that they concern.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FanOut {
    /// All while the client has little to do, and a majority first under load: from 8 acquires at once on, and from 64
    /// leases on for their renewals.
    #[default]
    Adaptive,
    /// All, always.
    All,
    /// A majority first, always: the fewest commands on the nodes.
    Majority,
}
