/// What happens to a request whose lease is lost while the inner service works on it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnLost {
    /// The inner service's future, or the response's body, is dropped before the resource can be another's, and
    /// the request is refused.
    #[default]
    Abort,
    /// The request goes on, and only [`RequestLease::lost`](crate::RequestLease::lost) tells.
    ///
    /// For work that is safe to finish by itself, because the resource refuses old fencing tokens or because the
    /// lock only spares double work.
    Signal,
}
