/// Until when a request holds its lock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Hold {
    /// Until the response's body has ended: by its last frame, by an error or by being dropped.
    ///
    /// A client that reads slowly holds the lock for as long as it reads, or for
    /// [`max_hold`](crate::RedlockLayerBuilder::max_hold).
    #[default]
    Body,
    /// Until the response's head is there.
    ///
    /// For bodies that only report work which is already done.
    Response,
}
