//! A server, a session with it, and what to ask.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use redlock_core::node::{Answer, Keyspace, Node, NodeTime, RedisNode, Reply, Request, Session};
use redlock_proto::{
    JobEntry, JobVerb, KeySet, Lock, LockMode, MarkState, NodeKey, NodeVerb, OwnerId, Quarantine,
    Series, Shard, Tick, Verb, Window,
};
use redlock_sandbox::{Server, ServerBinary, ServerOptions, Value};

pub(crate) const TTL: Duration = Duration::from_secs(20);
pub(crate) const MARK: &str = "{odd}:mark";
pub(crate) const FENCE: &str = "{odd}:counters";
pub(crate) const JOB: &str = "{odd}:job:books";
pub(crate) const HORIZON: &str = "{odd}:horizon";

/// A reply, or the error in its place.
pub(crate) type Replied = Result<Reply, Arc<str>>;

pub(crate) struct Fixture {
    pub(crate) server: Server,
    session: Box<dyn Session>,
}

impl Fixture {
    /// Returns a server that votes.
    pub(crate) async fn voting() -> Self {
        let mut fixture = Self::new().await;
        fixture.bless().await;
        fixture
    }

    pub(crate) async fn new() -> Self {
        Self::with(ServerOptions::default()).await
    }

    pub(crate) async fn with(options: ServerOptions) -> Self {
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let server = Server::start(&binary, options).unwrap();
        let session = connect(&server.url()).await.unwrap();
        Self { server, session }
    }

    pub(crate) async fn bless(&mut self) {
        let since = self.since().await;
        assert_eq!(self.ask(open(since, 0)).await, Ok(Reply::Done));
    }

    /// Returns the beginning of the quarantine.
    pub(crate) async fn since(&mut self) -> NodeTime {
        let standing = self.call(&[]).await.standing.unwrap();
        match standing.state {
            MarkState::Quarantined { since, .. } => since,
            state => panic!("it is in no quarantine: {state:?}"),
        }
    }

    /// Makes a call, as a link does: what a transaction leaves unclear, or refuses, is asked again.
    pub(crate) async fn call(&mut self, requests: &[Request]) -> Answer {
        let keyspace = keyspace();
        let are_plain = !requests.is_empty() && requests.iter().all(Request::is_plain);
        if !(crate::TRANSACTIONS && are_plain && are_for_different_keys(requests)) {
            return self.call_by_script(requests).await;
        }
        let mut answer = match self.session.transact(&keyspace, requests).await {
            Ok(answer) => answer,
            Err(error) => {
                assert!(!error.may_have_run, "{error:?}");
                return self.call_by_script(requests).await;
            }
        };
        for (request, reply) in requests.iter().zip(&mut answer.replies) {
            if *reply == Ok(Reply::Unclear) {
                let request = [request.clone()];
                let again = self.session.call(&keyspace, &request).await;
                let mut again = again.expect("the call as a whole is answered");
                *reply = again.replies.remove(0);
                answer.standing = again.standing.or(answer.standing);
            }
        }
        answer
    }

    pub(crate) async fn call_by_script(&mut self, requests: &[Request]) -> Answer {
        let answer = self.session.call(&keyspace(), requests).await;
        answer.expect("the call as a whole is answered")
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Replied {
        self.call(&[request]).await.replies.remove(0)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Value {
        self.server
            .command(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    pub(crate) fn exists(&self, key: &str) -> bool {
        self.command(&["EXISTS", key]).as_integer() == Some(1)
    }

    /// Returns the value of a key, whatever its type.
    pub(crate) fn dump(&self, key: &str) -> Value {
        self.command(&["DUMP", key])
    }
}

pub(crate) async fn connect(url: &str) -> Result<Box<dyn Session>, Arc<str>> {
    RedisNode::at(url).unwrap().connect().await
}

pub(crate) fn keyspace() -> Arc<Keyspace> {
    Arc::new(Keyspace::new("{odd}", Quarantine::new(3 * TTL, 0.01)))
}

/// Returns a request about a key of the keyspace.
pub(crate) fn request(verb: Verb, key: &str, owner: u8) -> Request {
    request_of(verb, &[key], owner)
}

/// Returns a request about several keys of the keyspace.
pub(crate) fn request_of(verb: Verb, keys: &[&str], owner: u8) -> Request {
    let keys = keys
        .iter()
        .map(|key| NodeKey::from(format!("{{odd}}:lock:{key}")));
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: KeySet::new(keys).unwrap(),
            owner: OwnerId::from_random([owner; 16]),
        }
        .into(),
    }
}

fn are_for_different_keys(requests: &[Request]) -> bool {
    let mut keys = HashSet::new();
    requests.iter().all(|request| match request {
        Request::Lock { lock, .. } => keys.insert(lock.keys.first()),
        _ => false,
    })
}

/// Returns the counter of a key of the keyspace, as a member of the counters.
pub(crate) fn counter_of(key: &str) -> String {
    let key = NodeKey::from(format!("{{odd}}:lock:{key}"));
    Shard::of(&key).number().to_string()
}

pub(crate) fn acquire() -> Verb {
    Verb::Acquire {
        ttl: TTL,
        proposal: 1,
        block: 1,
        wish: None,
        line: None,
    }
}

pub(crate) fn extend(write_back: Option<u64>) -> Verb {
    Verb::Extend {
        ttl: 2 * TTL,
        write_back,
    }
}

pub(crate) fn heal() -> Verb {
    Verb::Heal {
        ttl: 2 * TTL,
        counter: 77,
    }
}

pub(crate) const RELEASE: Verb = Verb::Release { ttl: TTL };
pub(crate) const TOMBSTONE: Verb = Verb::Tombstone { ttl: TTL };

pub(crate) fn open(since: NodeTime, floor: u64) -> Request {
    Request::Node(NodeVerb::Open {
        floor,
        since,
        horizon: None,
    })
}

/// Returns a request about the one job, whose lock is the key of the same name.
pub(crate) fn job(verb: JobVerb) -> Request {
    let job = JOB.into();
    Request::Job { verb, job }
}

/// Returns a run of a tick of just now.
pub(crate) fn run(number: u64) -> JobEntry {
    JobEntry {
        series: Series::TICKS,
        tick: Tick::from_millis(began() + number).expect("it is this century"),
        attempt: 1,
        token: 1_000 + number,
        text: "text".into(),
    }
}

/// Returns a claim that no clock refuses.
pub(crate) fn claim(number: u64, owner: u8) -> JobVerb {
    JobVerb::Claim {
        lock: "{odd}:lock:books".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: TTL,
        proposal: 1,
        series: Series::TICKS,
        tick: run(number).tick,
        attempt: 1,
        window: Window::new(Window::LONGEST, Window::LONGEST),
    }
}

pub(crate) fn commit(number: u64, owner: u8) -> JobVerb {
    commit_of(run(number), owner)
}

pub(crate) fn commit_of(entry: JobEntry, owner: u8) -> JobVerb {
    JobVerb::Commit {
        lock: "{odd}:lock:books".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: 2 * TTL,
        entry,
    }
}

pub(crate) fn record(number: u64) -> JobVerb {
    let entry = run(number);
    JobVerb::Record { entry, ttl: TTL }
}

pub(crate) fn read() -> JobVerb {
    let lock = "{odd}:lock:books".into();
    JobVerb::Read { lock }
}

/// Returns when this test began, in milliseconds since the epoch.
fn began() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "servers judge ticks by the wall clock"
    )]
    static BEGAN: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);
    let since = BEGAN.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.expect("it is later").as_millis()).expect("it is this century")
}

pub(crate) fn taken(reply: &Replied) -> bool {
    matches!(reply, Ok(Reply::Taken { .. }))
}

/// Returns whether a reply is an error that begins with these words.
pub(crate) fn says(reply: &Replied, words: &str) -> bool {
    matches!(reply, Err(reason) if reason.starts_with(words))
}
