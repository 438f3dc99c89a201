//! One request under its lock, for HTTP and for anything else: its course, its lock, and the locks that its handler takes.

pub(crate) mod call;
pub(crate) mod handler_locks;
pub(crate) mod request_lock;
