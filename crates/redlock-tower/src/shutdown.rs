//! The end of a service: its server, its jobs and its client, in this order.

use std::{
    fmt,
    future::{Future, IntoFuture, pending, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use redlock_core::Redlock;
use tokio::{join, select, signal, sync::oneshot, time::timeout};

/// Serves until the process is asked to end, and then ends server, jobs and client in order.
///
/// 1. [Other work](Self::and) begins to end, such as jobs, which start no new run.
/// 2. The client is closed, which answers all requests that wait for a lock with 503; requests that hold one go on.
/// 3. The server takes no new connections, and returns when it has answered the requests that it has begun.
/// 4. When the server and the other work have ended, or [the limit](Self::limit) is over, the client waits until the nodes
///    have confirmed the last releases, for five seconds at most.
///
/// A warning with the target `redlock::http` says what did not end in time.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::post};
/// use redlock_core::Redlock;
/// use redlock_tower::{FixedKey, RedlockLayer, Shutdown};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let lock = RedlockLayer::new(redlock.clone(), FixedKey::new("import".parse::<redlock_core::ResourceKey>()?));
/// let app: Router = Router::new().route("/import", post(async || "done").route_layer(lock));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
///
/// let shutdown = Shutdown::on_signal(redlock)?; // SIGTERM or Ctrl-C
/// # drop(shutdown);
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// # let shutdown = Shutdown::when(redlock, async {}); // at once
/// shutdown
///     // With `redlock-cron`: `.and(async move { jobs.shutdown(Duration::from_secs(10)).await })`
///     .serve(|asked| axum::serve(listener, app).with_graceful_shutdown(asked))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until `serve` is called"]
pub struct Shutdown {
    redlock: Redlock,
    asked: Work,
    other: Vec<Work>,
    limit: Duration,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Shutdown {
    /// Ends when the process is asked to end, from this call on: by `SIGTERM`, as service managers do, or by Ctrl-C.
    ///
    /// # Errors
    ///
    /// The process cannot listen to the signal.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its I/O enabled.
    pub fn on_signal(redlock: Redlock) -> io::Result<Self> {
        #[cfg(unix)]
        let mut term = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        #[cfg(unix)]
        let term = async move {
            let _: Option<()> = term.recv().await;
        };
        #[cfg(not(unix))]
        let term = pending::<()>();
        Ok(Self::when(redlock, async move {
            let pressed = async {
                if signal::ctrl_c().await.is_err() {
                    pending::<()>().await;
                }
            };
            select! {
                () = term => {}
                () = pressed => {}
            }
        }))
    }

    /// Ends when `asked` is done, for tests and for services that are asked in another way.
    pub fn when(redlock: Redlock, asked: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            redlock,
            asked: Box::pin(asked),
            other: Vec::new(),
            limit: LIMIT,
        }
    }

    /// Adds work that ends beside the server: it is polled first when the process is asked to end, and not before.
    ///
    /// The shutdown of a `SingletonScheduler` belongs here, and the wait for tasks that have taken locks out of their
    /// requests.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use redlock_tower::Shutdown;
    /// use std::time::Duration;
    /// use tokio_util::task::TaskTracker;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let tasks = TaskTracker::new(); // `tasks.spawn(lock.run(..))` in handlers
    /// # tasks.spawn(async {});
    /// let shutdown = Shutdown::when(redlock, async { /* until the process is asked to end */ })
    ///     .and(async move {
    ///         tasks.close();
    ///         tasks.wait().await;
    ///     })
    ///     .limit(Duration::from_secs(20));
    /// // A service without a server waits to be asked.
    /// shutdown.serve(async |asked| Ok::<_, std::io::Error>(asked.await)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn and<T>(mut self, work: impl Future<Output = T> + Send + 'static) -> Self {
        self.other.push(Box::pin(async move { drop(work.await) }));
        self
    }

    /// Sets how long the server and the other work may take to end: 24 s by default, which with the last releases is less
    /// than Kubernetes' half minute.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs a server, which gets a future that is done when it must take no new connections.
    ///
    /// # Errors
    ///
    /// The server's own error; the other work and the client are ended first.
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the server and the other work, and does not close the client.
    pub async fn serve<S, E>(self, server: impl FnOnce(Asked) -> S) -> Result<(), E>
    where
        S: IntoFuture<Output = Result<(), E>>,
    {
        let Self {
            redlock,
            asked: asked_to_end,
            other,
            limit,
        } = self;
        let (ask, asked) = oneshot::channel();
        let mut server = pin!(server(Asked(asked)).into_future());
        let ended = select! {
            biased;
            ended = &mut server => Some(ended),
            () = asked_to_end => None,
        };
        tracing::debug!(target: crate::TARGET, client = redlock.id(), "ends");
        // It is polled first: a client that is closed starts no tick.
        let other = timeout(limit, all(other));
        let served = async {
            // The first poll closes the client; the last releases are waited for below.
            drop(timeout(Duration::ZERO, redlock.close()).await);
            // The server may have ended by itself.
            let _: Result<(), ()> = ask.send(());
            match ended {
                Some(ended) => Some(ended),
                None => timeout(limit, server).await.ok(),
            }
        };
        let (other, served) = join!(biased; other, served);
        for (has_ended, what) in [
            (served.is_some(), "requests that were not answered"),
            (other.is_ok(), "work that did not end"),
            (
                timeout(RELEASES, redlock.close()).await.is_ok(),
                "releases that were not confirmed",
            ),
        ] {
            if !has_ended {
                tracing::warn!(target: crate::TARGET, client = redlock.id(), "{what} in time end with this process");
            }
        }
        served.unwrap_or(Ok(()))
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A future that is done when a server must take no new connections; [`Shutdown::serve`] makes it.
///
/// # Cancel safety
///
/// Dropping it has no effect.
///
/// # Examples
///
/// ```
/// use axum::Router;
/// use redlock_tower::Asked;
/// use tokio::net::TcpListener;
///
/// async fn serve(listener: TcpListener, app: Router, asked: Asked) -> std::io::Result<()> {
///     axum::serve(listener, app).with_graceful_shutdown(asked).await
/// }
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Asked(oneshot::Receiver<()>);

impl Future for Asked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// Waits for all of them at once.
async fn all(mut work: Vec<Work>) {
    poll_fn(|cx| {
        work.retain_mut(|work| work.as_mut().poll(cx).is_pending());
        if work.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

const LIMIT: Duration = Duration::from_secs(24);

/// How long nodes may take to confirm the last releases.
const RELEASES: Duration = Duration::from_secs(5);
