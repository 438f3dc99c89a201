//! Speaks to a server over one connection.
//!
//! | module | role |
//! |---|---|
//! | `transport` | bytes: pipelined commands and their answers |
//! | `wire` | calls and answers, as the script and transactions have them |
//! | `form` | by a transaction, or by the script |
//! | `messages` | what a server publishes |
//! | `replicas`, `predecessor` | grants that replicas must have; a connection that was given up |
//! | `error`, `error_texts`, `probe` | what went wrong, for an operator |

pub(crate) mod args;
pub(crate) mod error;
pub(crate) mod error_texts;
pub(crate) mod form;
pub(crate) mod messages;
pub(crate) mod predecessor;
pub(crate) mod probe;
pub(crate) mod replicas;
pub(crate) mod rights;
pub(crate) mod transport;
pub(crate) mod wire;
