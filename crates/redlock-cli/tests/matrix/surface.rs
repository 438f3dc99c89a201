//! The ways to hold a lease.

use std::{
    convert::Infallible,
    fmt,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::Mutex,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use futures_util::future::{BoxFuture, FutureExt as _, OptionFuture};
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_cron::{
    Outcome, Overlap, SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler,
};
use redlock_tower::{LeaderOnlyLayer, PathKey, RedlockLayer};
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, time::sleep};
use tower::ServiceExt as _;

use crate::attempt::{Attempt, Running};

/// The role of a process of this program: an attempt by a surface, or without one the command that `redlock run` and
/// `elect` run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Role(Option<Surface>, Attempt);

impl Role {
    /// Returns the role of this process, unless it is the test.
    pub(crate) fn of_this_process() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        let is_it = arguments.next().is_some_and(|first| first == ROLE);
        let role = arguments.next().filter(|_| is_it)?;
        Some(serde_json::from_str(&role).expect("a role"))
    }

    fn arguments(&self) -> [String; 2] {
        let role = serde_json::to_string(self).expect("it is plain data");
        [ROLE.to_owned(), role]
    }

    fn command(&self) -> Command {
        let mut command = Command::new(own_file());
        command.args(self.arguments());
        command
    }

    /// Plays the role.
    pub(crate) fn play(self) -> ExitCode {
        let Self(surface, attempt) = self;
        match surface {
            None => attempt.journal.work(&attempt.worker),
            Some(surface) => {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(surface.hold(&attempt));
            }
        }
        ExitCode::SUCCESS
    }
}

fn own_file() -> PathBuf {
    std::env::current_exe().expect("it has a file")
}

/// A part of the product through which a service holds a lease.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Surface {
    /// A call of the client.
    Library,
    /// The layer that serialises requests.
    Layer,
    /// The layer that lets the leader of an election serve requests.
    LeaderOnly,
    /// The command that runs another one.
    Run,
    /// The command that runs another one while it leads.
    Elect,
    /// A tick of a job that is due.
    Tick,
    /// A run of a job that a caller asks for.
    Trigger,
}

impl Surface {
    pub(crate) const ALL: [Self; 7] = [
        Self::Library,
        Self::Layer,
        Self::LeaderOnly,
        Self::Run,
        Self::Elect,
        Self::Tick,
        Self::Trigger,
    ];

    /// Starts an attempt by this surface.
    pub(crate) fn start(self, attempt: &Attempt) -> Running {
        let command = self.command(attempt);
        let command = command.unwrap_or_else(|| Role(Some(self), attempt.clone()).command());
        Running::start(command, &attempt.worker)
    }

    /// Returns the command that is the surface, if it is one.
    fn command(self, attempt: &Attempt) -> Option<Command> {
        let verb: &[&str] = match self {
            Self::Run => &["run", "--wait", "60s"],
            Self::Elect => &["elect", "--candidate", &attempt.worker],
            _ => return None,
        };
        let ms = |time: Duration| format!("{}ms", time.as_millis());
        let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
        command
            .args(verb)
            .args([&*attempt.key, "--"])
            .arg(own_file())
            .args(Role(None, attempt.clone()).arguments())
            .env("REDLOCK_NODES", attempt.connect.nodes.join(","))
            .env("REDLOCK_TTL", ms(attempt.connect.ttl))
            .env("REDLOCK_MAX_TTL", ms(attempt.connect.max_ttl));
        Some(command)
    }

    /// Holds the lease and works once, in this process.
    async fn hold(self, attempt: &Attempt) {
        // In a quarantine the first answers of the nodes are no votes.
        let builder = attempt.connect.builder().quorum_wait(PATIENCE);
        let redlock = builder.build().await.expect("the nodes can be reached");
        match self {
            Self::Library => by_call(&redlock, attempt).await,
            Self::Layer => by_layer(&redlock, attempt).await,
            Self::LeaderOnly => as_leader(&redlock, attempt).await,
            Self::Tick | Self::Trigger => self.in_a_job(&redlock, attempt).await,
            Self::Run | Self::Elect => unreachable!("they are commands"),
        }
        redlock.close().await;
    }

    async fn in_a_job(self, redlock: &Redlock, attempt: &Attempt) {
        let (tell, mut told) = mpsc::unbounded_channel();
        let scheduler = JobScheduler::new().await.expect("it is made");
        let scheduler = SingletonScheduler::builder(redlock.clone(), scheduler)
            .namespace("matrix")
            .replica(&attempt.worker)
            .on_outcome(move |report| {
                let _ = tell.send(report.outcome());
            })
            .build()
            .expect("its settings are valid");
        let every = match self {
            Self::Tick => Duration::from_secs(1),
            // Hardly a tick is due while the test lasts.
            _ => Duration::from_secs(7 * 24 * 60 * 60),
        };
        // A tick that comes before the process has ended has nothing to do.
        let once = Mutex::new(Some(attempt.work()));
        let work = move |_| {
            let work = once.lock().expect("no run panics").take();
            async move {
                OptionFuture::from(work).await;
                Ok::<_, Infallible>(())
            }
        };
        let job = SingletonJob::every(&*attempt.key, every, work).overlap(Overlap::Wait);
        scheduler.add(job).await.expect("the job is valid");
        scheduler.start().await.expect("it starts");
        if self == Self::Trigger {
            let report = scheduler.trigger_now(&attempt.key).await;
            let report = report.expect("the job is there");
            assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
        } else {
            while told.recv().await.expect("reports come") != Outcome::Ok {}
        }
        let ended = scheduler.shutdown(PATIENCE).await;
        assert!(ended.unfinished().is_empty(), "{ended:?}");
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Library => "a call of the client",
            Self::Layer => "a request behind the layer",
            Self::LeaderOnly => "a request that the leader serves",
            Self::Run => "redlock run",
            Self::Elect => "redlock elect",
            Self::Tick => "a tick of a job",
            Self::Trigger => "a run that was asked for",
        })
    }
}

async fn by_call(redlock: &Redlock, attempt: &Attempt) {
    let options = AcquireOptions::new().wait(Wait::UpTo(PATIENCE));
    let guard = redlock.acquire_with(&*attempt.key, options).await;
    let guard = guard.expect("it is waited for");
    attempt.work().await;
    guard.release().await.expect("the lease was held all along");
}

async fn by_layer(redlock: &Redlock, attempt: &Attempt) {
    let layer = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().wait(Wait::UpTo(PATIENCE)))
        .build(PathKey::new("name", "name"));
    let handler = handler(attempt);
    let app = Router::new().route(
        "/{name}",
        post(handler).layer(layer.expect("it is a good key")),
    );
    assert_eq!(ask(&app, &attempt.key).await, StatusCode::OK);
}

/// Campaigns, and asks itself until it serves the request.
async fn as_leader(redlock: &Redlock, attempt: &Attempt) {
    let election = redlock.election(&*attempt.key).candidate(&*attempt.worker);
    let election = election.build().expect("it is named well");
    let app = Router::new()
        .route("/{name}", post(handler(attempt)))
        .layer(LeaderOnlyLayer::new(election.clone()));
    let served = async {
        loop {
            match ask(&app, &attempt.key).await {
                StatusCode::OK => return,
                refused => assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE),
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let lead = election.lead(|_| std::future::pending::<()>());
    tokio::select! {
        () = served => {}
        ended = lead => panic!("a term without end: {:?}", ended.is_ok()),
    }
}

/// Returns a handler of requests that works.
fn handler(attempt: &Attempt) -> impl Fn() -> BoxFuture<'static, ()> + Clone + use<> {
    let attempt = attempt.clone();
    move || attempt.work().boxed()
}

async fn ask(app: &Router, name: &str) -> StatusCode {
    let request = Request::post(format!("/{name}")).body(Body::empty());
    let answer = app.clone().oneshot(request.expect("it is valid")).await;
    let answer = answer.unwrap_or_else(|never| match never {});
    let status = answer.status();
    // The lease lasts until the answer is read.
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
    body.expect("it is there");
    status
}

const ROLE: &str = "--role";

/// How long a surface waits for its lease.
const PATIENCE: Duration = Duration::from_secs(60);
