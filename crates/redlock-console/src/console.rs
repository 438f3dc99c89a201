use std::{fmt, sync::Arc};

use http::request::Parts;
use redlock_core::Redlock;
use redlock_cron::SingletonScheduler;
use tokio::sync::{Mutex, watch};
use tower_http::csrf::CsrfLayer;

use crate::{
    Access,
    hub::Hub,
    look::{
        sample::{Sampler, SamplerOptions},
        settings::NodeSettings,
    },
};

/// The console of one client: [`router`](crate::router) makes the routes of it.
///
/// Cloning it is cheap and returns another handle to the same console.
/// All viewers share one look a second at the nodes, and nothing is asked while no viewer looks.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_console::{Access, Console};
///
/// let console = Console::builder(redlock)
///     // Behind one's own authentication, which has put the name of a group here.
///     .access(|parts| match parts.headers.get("x-group").and_then(|group| group.to_str().ok()) {
///         Some("operators") => Access::Operate,
///         Some(_) => Access::Read,
///         None => Access::None,
///     })
///     .build()?;
/// let app: axum::Router = axum::Router::new().nest("/ops/locks", redlock_console::router(console.clone()));
/// // At the end of the service, before the server waits for its connections:
/// console.close();
/// # drop(app);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Console(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) hub: Hub,
    pub(crate) access: Box<AccessOf>,
    pub(crate) csrf: CsrfLayer,
    pub(crate) closing: watch::Sender<bool>,
}

type AccessOf = dyn Fn(&Parts) -> Access + Send + Sync;

/// Describes a [`Console`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConsoleBuilder {
    client: Redlock,
    options: SamplerOptions,
    access: Box<AccessOf>,
    origins: Vec<String>,
}

/// An error in the description of a console: the setting at fault, and what it may be.
#[derive(Clone, Debug)]
pub struct ConsoleError {
    field: &'static str,
    message: String,
}

impl Console {
    /// Starts to describe the console of a client.
    ///
    /// It looks at the first 50,000 keys of each node and the first 5,000 jobs, by name.
    /// It connects to the client's nodes beside the client, with the same settings.
    /// Of a node that only the client can connect to (a pool, a node in memory), it shows the vote, and no keys.
    /// The user of each node needs `+scan` beside what the client needs; without it, the page says so.
    pub fn builder(client: Redlock) -> ConsoleBuilder {
        ConsoleBuilder {
            client,
            options: SamplerOptions {
                most_keys: MOST_KEYS,
                most_jobs: MOST_JOBS,
                most_runs: MOST_RUNS,
                most_callers: MOST_CALLERS,
                ..SamplerOptions::default()
            },
            access: Box::new(|_| Access::Read),
            origins: Vec::new(),
        }
    }

    /// Ends all streams, and refuses every further request with 503.
    ///
    /// A server that waits for its connections before it ends, as with a graceful shutdown of axum, would wait for the
    /// streams for up to five minutes without it.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.0.closing.borrow()
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl ConsoleBuilder {
    /// Adds a scheduler of this process, which knows the next ticks of its jobs better than the nodes do.
    pub fn jobs(mut self, scheduler: SingletonScheduler) -> Self {
        self.options.schedulers.push(scheduler);
        self
    }

    /// Adds elections by their names, because nodes cannot tell an election from another key.
    pub fn elections<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.options.elections.extend(names.take(MOST_ELECTIONS));
        self
    }

    /// Sets what the sender of a request may do.
    ///
    /// Default: [`Access::Read`] for every request.
    /// The server asks for each request before it does anything else, and each second for each stream; a stream ends when
    /// access is withdrawn.
    /// A request that is not a `GET` or a `HEAD` needs [`Access::Operate`], whatever it asks for.
    pub fn access(mut self, access: impl Fn(&Parts) -> Access + Send + Sync + 'static) -> Self {
        self.access = Box::new(access);
        self
    }

    /// Adds origins from which browsers may send actions, beside the origin of the page itself.
    ///
    /// A service behind a proxy that changes the header `Host` needs the origin here under which browsers know it, such as
    /// `https://ops.example.com`: scheme, host in lower case, and a port only if it is not that of the scheme.
    pub fn origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Makes the console; it asks no node.
    ///
    /// # Errors
    ///
    /// An origin is not valid, or an election has a name that no key can have.
    pub fn build(self) -> Result<Console, ConsoleError> {
        let failed = |field, why: &dyn fmt::Display| ConsoleError {
            field,
            message: why.to_string(),
        };
        let settings = NodeSettings::new(self.client.config().clone());
        let settings = settings.map_err(|error| failed("client", &error))?;
        for election in &self.options.elections {
            let checked = settings.key(election);
            checked.map_err(|invalid| failed("elections", &format!("{election:?}: {invalid}")))?;
        }
        let mut csrf = CsrfLayer::new();
        for origin in &self.origins {
            let invalid = |error: &dyn fmt::Display| {
                let message =
                    format!("{origin:?} is no origin like https://ops.example.com: {error}");
                failed("origins", &message)
            };
            csrf = csrf
                .add_trusted_origin(origin)
                .map_err(|error| invalid(&error))?;
        }
        let sampler = Sampler::new(self.client.clone(), settings, self.options);
        Ok(Console(Arc::new(Shared {
            hub: Hub::new(self.client, Mutex::new(sampler)),
            access: self.access,
            csrf,
            closing: watch::Sender::new(false),
        })))
    }
}

impl fmt::Debug for ConsoleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleBuilder")
            .field("options", &self.options)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

impl ConsoleError {
    /// Returns the setting at fault, as its method in [`ConsoleBuilder`] is called.
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, message } = self;
        write!(f, "{field}: {message}")
    }
}

impl std::error::Error for ConsoleError {}

/// How many keys of each node are looked at, so that a server with very many does not fill the memory.
const MOST_KEYS: usize = 50_000;
/// How many jobs are looked at.
const MOST_JOBS: usize = 5_000;
/// How many runs of each job the page has: the page of one job has all.
const MOST_RUNS: usize = 20;
/// How many callers of each line the page has.
const MOST_CALLERS: usize = 20;
/// How many elections are looked at.
const MOST_ELECTIONS: usize = 20;
