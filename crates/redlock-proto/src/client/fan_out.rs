/// The number of nodes that an acquire asks at once.
///
/// Any strict majority of the nodes decides an acquire.
/// An acquire that asks only a majority saves work on the other nodes and in the client: two fifths of it if there are
/// five nodes.
/// An acquire that asks all nodes is faster, because the first answers decide.
/// Claims of ticks, extensions and releases go to all nodes that they concern.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FanOut {
    /// All while the client has little to do, and a majority first under load.
    #[default]
    Adaptive,
    /// All, always.
    All,
    /// A majority first, always: the fewest commands on the nodes.
    Majority,
}
