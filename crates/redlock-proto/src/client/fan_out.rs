/// The number of nodes that an acquire asks at once.
///
/// Any strict majority will do, whichever nodes it is of.
/// To ask only a majority spares the other nodes, and the client, two fifths of the work where there are five; to ask
/// all is faster, since the first of them decide.
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
