//! A form of nodes whose servers others name, and the ways in which their masters are replaced.

/// How a master is replaced.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Way {
    /// It hangs, and wakes later.
    Freeze,
    /// An operator has it replaced.
    Planned,
    /// All that name it lose it, and its replica does; clients do not.
    Cut,
    /// It is killed, and starts again later.
    Kill,
}

/// Nodes whose servers others name.
pub(super) trait Form {
    /// The name of the form, for the figures.
    fn name(&self) -> &'static str;

    /// The nodes' URLs.
    fn urls(&self) -> Vec<String>;

    /// The number of votes.
    fn votes(&self) -> usize;

    /// The number of masters that can be replaced at once in this way.
    fn at_once(&self, way: Way) -> usize;

    /// Takes the master of a vote away.
    async fn replace(&mut self, vote: usize, way: Way);

    /// Waits until the others name a server in its place.
    async fn is_replaced(&self, vote: usize);

    /// Has the server that was taken away come back, and does not wait for it.
    fn bring_back(&mut self, vote: usize);

    /// Waits until the server that came back can be the master again.
    async fn can_be_promoted(&self, vote: usize);

    /// Has one of those that name the servers lose its file, if that can be.
    async fn lose_file(&mut self);

    /// The locks on all servers, old masters and replicas among them.
    fn keys(&self) -> Vec<String>;
}
