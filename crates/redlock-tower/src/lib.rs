#![doc = include_str!("../docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "axum")]
mod axum;
mod config_error;
mod generic;
mod grpc;
mod http;
mod key;
mod leader_only;
mod lease;
#[cfg(not(feature = "metrics"))]
mod metrics;
#[cfg(feature = "metrics")]
pub mod metrics;
mod read_body;
mod rejection;
mod request;
mod retry_after;
#[cfg(feature = "axum")]
mod shutdown;

#[cfg(feature = "axum")]
pub use self::{
    axum::{Locked, LockedRejection, MissingLease},
    key::PathKey,
    shutdown::{Asked, Shutdown},
};
pub use self::{
    config_error::{ConfigError, ConfigErrorKind},
    generic::{GenericFuture, GenericLayer, GenericService, ServiceError},
    http::{
        RedlockLayer, RedlockLayerBuilder, RedlockService, ResponseBody, ResponseFuture,
        read_to_end,
    },
    key::{
        BoxedKey, ExtensionKey, FixedKey, HeaderKey, InHandler, KeyError, KeyExtractor, LockKey,
    },
    leader_only::{LEADER, LeaderOnlyFuture, LeaderOnlyLayer, LeaderOnlyService},
    lease::{Hold, LeaseTaken, LossPolicy, OwnedLease, RequestLease},
    read_body::{ReadBodyFuture, ReadBodyLayer, ReadBodyService},
    rejection::{Rejection, RejectionKind},
};

// Its types are in this crate's signatures.
pub use redlock_core;

// What the README shows compiles, and runs.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}

/// The target of all events.
const TARGET: &str = "redlock::http";

#[cfg(doc)]
pub mod guide {
    //! Guides: one page for each question about services with locks.
    //!
    //! | page | answers |
    //! |---|---|
    //! | [`placement`] | Where does the layer go, beside CORS, time limits, other locks and WebSockets? |
    //! | [`keys`] | How are a path, a user and a method made into one key? |
    //! | [`holding`] | How long does a request hold its lock, and what ends with it? |
    //! | [`answers`] | When does a refused client come back, and what does a log say? |
    //! | [`shutdown`] | How does a service end in order, and how does Kubernetes know that it is ready? |
    //! | [`testing`] | How are handlers tested without a server? |
    //! | [`leader`] | How does one replica lead, and how do the others pass requests on to it? |
    //! | [`fencing`] | How does a database refuse a holder that comes too late? |
    //!
    //! The tests of this crate compile and run the code of each page.

    /// Where the layer goes.
    #[doc = include_str!("../docs/guide/placement.md")]
    pub mod placement {}

    /// Keys of several parts.
    #[doc = include_str!("../docs/guide/keys.md")]
    pub mod keys {}

    /// The time for which a lock is held.
    #[doc = include_str!("../docs/guide/holding.md")]
    pub mod holding {}

    /// Answers and logs.
    #[doc = include_str!("../docs/guide/answers.md")]
    pub mod answers {}

    /// Shutdown and readiness.
    #[doc = include_str!("../docs/guide/shutdown.md")]
    pub mod shutdown {}

    /// Tests without a server.
    #[doc = include_str!("../docs/guide/testing.md")]
    pub mod testing {}

    /// A leader among replicas.
    #[doc = include_str!("../docs/guide/leader.md")]
    pub mod leader {}

    /// Fencing in SQL.
    #[doc = include_str!("../docs/guide/fencing.md")]
    pub mod fencing {}
}
