//! The console of a lock: a page on which an operator sees what its nodes know, and acts.
//!
//! [`router`] makes the routes of a [`Console`], to be mounted in a service behind its own authentication.
//! The command `redlock console` serves the same page without a service.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redlock_console::{Access, Console, router};
//! use redlock_core::Redlock;
//!
//! let redlock = Redlock::builder()
//!     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
//!     .build()
//!     .await?;
//! let console = Console::builder(redlock)
//!     .access(|parts| match parts.headers.contains_key("x-operator") {
//!         true => Access::Operate, // the proxy in front sets the header, and takes it out of foreign requests
//!         false => Access::Read,
//!     })
//!     .build()?;
//! let app: axum::Router = axum::Router::new().nest("/ops/locks", router(console.clone()));
//! # drop(app);
//! # Ok(())
//! # }
//! ```
//!
//! # What it asks of the nodes
//!
//! All viewers share one look a second, which the first of them takes; while none looks, no node is asked.
//! A look costs what a look of `redlock top` costs.
//! The console connects to the nodes by itself, with the settings of the client, and its user needs the right `+scan`
//! beside those of a client: without it, the page says so and shows no keys.
//!
//! # Actions
//!
//! Each is a `POST` with the fields of a form, and needs [`Access::Operate`].
//! Each takes a `reason`, and `by`, the name of the operator; the nodes remember both in the log of actions.
//! The answer is a page for a browser, or else JSON: `done`, and a `message` that says what was done or why not.
//! What would change nothing, such as the release of a free key, is not done.
//!
//! | route | further fields | does |
//! |---|---|---|
//! | `actions/pause` | `job`; `until`, an instant of RFC 3339, or `minutes` | keeps all replicas from starting it |
//! | `actions/resume` | `job` | lets them start it again |
//! | `actions/trigger` | `job` | asks all replicas for a run |
//! | `actions/rerun` | `job`, `tick` | runs a tick again |
//! | `actions/stop` | `job` | asks its runs to end |
//! | `actions/backfill` | `job`, `from`, `to`, `again` | runs the ticks of a range; `GET actions/backfill/count` says how many they are |
//! | `actions/cancel` | `job` | ends its backfill |
//! | `actions/forget` | `job` | deletes what the nodes remember of it |
//! | `actions/release` | `key` | takes a key away from its holder, which may still work |
//!
//! # Safety of the page
//!
//! Names of keys and jobs, labels and texts of errors come from anywhere: they are escaped as the HTML is written, and the
//! policy of the page lets no foreign script, style, picture or frame in.
//! Actions from other sites are refused by the headers `Sec-Fetch-Site` and `Origin`; see [`ConsoleBuilder::origins`].
//! No part of a [`Snapshot`] has the credentials of a node's URL.

mod access;
mod console;
mod filter;
mod hub;
#[doc(hidden)]
pub mod look;
mod page;
mod server;
pub mod snapshot;

pub use self::{
    access::Access,
    console::{Console, ConsoleBuilder, ConsoleError},
    server::router,
    snapshot::Snapshot,
};
