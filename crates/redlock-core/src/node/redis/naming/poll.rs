//! Inquiries: all informants are asked at once, once a second for as long as a session needs it.
//!
//! The votes of a Cluster have the same informants, so a client asks these once for all of its votes.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use deadpool_redis::redis::{
    ConnectionAddr, ConnectionInfo, RedisError, aio::MultiplexedConnection, cmd,
};
use futures_util::{StreamExt, future::try_join, stream::FuturesUnordered};
use redlock_proto::{Hearing, Instant, Pair};
use tokio::{
    net::lookup_host,
    sync::{Notify, watch},
    task::AbortHandle,
    time::{self, timeout, timeout_at},
};

#[cfg(feature = "deadpool-redis")]
use super::report::NamingReport;
use super::{
    super::{
        Address,
        error::{NONSENSE, NotOpened, is_unknown_command, reason},
    },
    directory::{Directory, Subject},
    greeting,
    testimony::{NamedServer, SentinelAnswer, Testimony, View, is_shown},
    texts,
};
use crate::{clock::Clock, credentials::CredentialsProvider};

/// The informants of a node, or of all votes of a Cluster, and how long they have.
pub(in super::super) struct Informants {
    pub(super) directory: Arc<Directory>,
    /// What gives the credentials for the server, and for the nodes of a Cluster.
    pub(in super::super) credentials: Option<CredentialsProvider>,
    pub(in super::super) connect_timeout: Duration,
    /// Their present inquiries, as long as a session needs these.
    poll: Mutex<Weak<Poll>>,
}

/// Those of a client that its nodes may have in common.
#[derive(Default)]
pub(crate) struct Polls(Vec<Arc<Informants>>);

impl Polls {
    /// Returns the informants of a directory, the same ones for all votes of a Cluster.
    pub(in super::super) fn of(
        &mut self,
        directory: Directory,
        credentials: Option<CredentialsProvider>,
        connect_timeout: Duration,
    ) -> Arc<Informants> {
        let is_same = |known: &&Arc<Informants>| known.directory.has_same_members(&directory);
        if let Some(known) = self.0.iter().find(is_same) {
            return Arc::clone(known);
        }
        let informants = Informants::new(directory, credentials, connect_timeout);
        let informants = Arc::new(informants);
        self.0.push(Arc::clone(&informants));
        informants
    }
}

impl Informants {
    pub(in super::super) fn new(
        directory: Directory,
        credentials: Option<CredentialsProvider>,
        connect_timeout: Duration,
    ) -> Self {
        Self {
            directory: Arc::new(directory),
            credentials,
            connect_timeout,
            poll: Mutex::default(),
        }
    }

    /// Returns the present inquiries; the first of them begins if there are none.
    pub(super) fn poll(&self) -> Arc<Poll> {
        // Nothing panics while the lock is held.
        let mut poll = self.poll.lock().unwrap_or_else(PoisonError::into_inner);
        poll.upgrade().unwrap_or_else(|| {
            let begun = Arc::new(Poll::start(Inquiry::of(self), self.limit()));
            *poll = Arc::downgrade(&begun);
            begun
        })
    }

    /// Returns why there is no session with the server at this address, which they name.
    pub(in super::super) fn not_opened(&self, server: &Address, why: &NotOpened) -> String {
        texts::no_server(&self.directory, server, why)
    }

    /// Returns how long an informant may take to answer, and a server to say what its mark is.
    pub(super) fn limit(&self) -> Duration {
        self.connect_timeout / 2
    }

    /// Asks all of them, and returns what each says.
    #[cfg(feature = "deadpool-redis")]
    pub(in super::super) async fn report(&self, slot: u16) -> Result<NamingReport, Arc<str>> {
        let mut rounds = self.poll().rounds().await;
        let round = rounds.complete().await?;
        Ok(NamingReport::of(&self.directory, &round, slot))
    }

    /// Returns how to connect to the server that a majority names now.
    #[cfg(feature = "deadpool-redis")]
    pub(in super::super) async fn located(&self, slot: u16) -> Result<ConnectionInfo, Arc<str>> {
        let mut rounds = self.poll().rounds().await;
        loop {
            let round = rounds.next().await?;
            if let Some(pair) = round.majority(slot) {
                return Ok(self.directory.at(&pair.server.host, pair.server.port));
            }
            if round.is_complete {
                return Err(texts::no_majority(&self.directory.subject, &round, slot).into());
            }
        }
    }
}

/// The inquiries that go on while this is there.
pub(super) struct Poll {
    rounds: watch::Receiver<Arc<Round>>,
    /// Whoever waits for an inquiry has the next one begin at once.
    wanted: Arc<Notify>,
    task: AbortHandle,
}

/// One inquiry, as far as it has come.
#[derive(Clone)]
pub(super) struct Round {
    /// On the client's own clock, before the first question was sent.
    pub(super) asked_at: Instant,
    /// Whether each informant has answered, or had its time.
    pub(super) is_complete: bool,
    pub(super) testimonies: Vec<Testimony>,
    /// Where the informant of each of these is.
    pub(super) from: Vec<Address>,
    /// Which informants have not answered, and why.
    pub(super) failed: Vec<(Address, Arc<str>)>,
    /// How many informants the URL names, if it must name all.
    named: Option<usize>,
}

/// The inquiries from a moment on, one after the other.
pub(super) struct Rounds {
    rounds: watch::Receiver<Arc<Round>>,
    since: Instant,
    /// They end with it.
    poll: Arc<Poll>,
}

impl Poll {
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the sessions that need it, which the driver closes"
    )]
    fn start(mut inquiry: Inquiry, limit: Duration) -> Self {
        let (told, rounds) = watch::channel(Arc::new(Round::new(&inquiry)));
        let wanted = Arc::new(Notify::new());
        let calls = Arc::clone(&wanted);
        let task = tokio::spawn(async move {
            loop {
                inquiry.ask_all(limit, &told).await;
                // An inquiry that is wanted meanwhile begins at once.
                drop(timeout(PAUSE, calls.notified()).await);
            }
        });
        Self {
            rounds,
            wanted,
            task: task.abort_handle(),
        }
    }

    /// Returns the inquiries from now on, the first of which begins at once.
    pub(super) async fn rounds(self: Arc<Self>) -> Rounds {
        let mut rounds = self.rounds.clone();
        let known = rounds.borrow_and_update().clone();
        let since = if known.is_complete {
            self.wanted.notify_one();
            CLOCK.now()
        } else {
            known.asked_at
        };
        Rounds {
            rounds,
            since,
            poll: self,
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rounds {
    /// Waits for the next answer.
    ///
    /// # Errors
    ///
    /// The inquiries have ended, with their runtime.
    pub(super) async fn next(&mut self) -> Result<Arc<Round>, Arc<str>> {
        loop {
            self.rounds
                .changed()
                .await
                .map_err(|_| "the client is closed")?;
            let round = Arc::clone(&self.rounds.borrow_and_update());
            if round.asked_at >= self.since {
                return Ok(round);
            }
        }
    }

    /// Waits until another inquiry is complete, which begins at once.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub(super) async fn again(&mut self) -> Result<Arc<Round>, Arc<str>> {
        self.since = CLOCK.now();
        self.poll.wanted.notify_one();
        self.complete().await
    }

    /// Waits until an inquiry is complete.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub(super) async fn complete(&mut self) -> Result<Arc<Round>, Arc<str>> {
        loop {
            let round = self.next().await?;
            if round.is_complete {
                return Ok(round);
            }
        }
    }
}

impl Round {
    fn new(inquiry: &Inquiry) -> Self {
        let directory = &inquiry.directory;
        Self {
            asked_at: CLOCK.now(),
            is_complete: false,
            testimonies: Vec::new(),
            from: Vec::new(),
            failed: Vec::new(),
            named: (!directory.is_cluster()).then_some(directory.informants.len()),
        }
    }

    /// Returns the answers about a slot; about a master, whatever the slot is.
    pub(super) fn hearing(&self, slot: u16) -> Hearing<NamedServer> {
        let mut hearing = match self.named {
            Some(named) => Hearing::of_all(named),
            None => Hearing::of_members(),
        };
        for testimony in &self.testimonies {
            hearing.hear(testimony.statement(slot));
        }
        hearing
    }

    /// Returns the pair that a majority names of all informants that are known.
    pub(super) fn majority(&self, slot: u16) -> Option<Pair<NamedServer>> {
        let hearing = self.hearing(slot);
        let pair = hearing.candidate()?;
        (hearing.support(&pair) > hearing.count() / 2).then_some(pair)
    }

    /// Returns how many masters have slots, as far as the node knows that knows of most.
    pub(super) fn masters(&self) -> usize {
        let counts = self.testimonies.iter().map(Testimony::masters);
        counts.max().unwrap_or(0)
    }

    /// Counts servers as one that Sentinels spell by different names of one address.
    async fn resolve(&mut self, limit: Duration) {
        let mut answers: Vec<&mut SentinelAnswer> = self
            .testimonies
            .iter_mut()
            .filter_map(|testimony| match testimony {
                Testimony::Sentinel(answer) => Some(answer),
                Testimony::Member(_) => None,
            })
            .collect();
        let Some(first) = answers.first().map(|answer| answer.names.server.id.clone()) else {
            return;
        };
        if answers.iter().all(|answer| answer.names.server.id == first) {
            return;
        }
        for answer in &mut answers {
            let server = &mut answer.names.server;
            if server.host.parse::<IpAddr>().is_ok() {
                continue;
            }
            let found = timeout(limit, lookup_host((&*server.host, server.port))).await;
            if let Ok(Ok(addresses)) = found
                && let Some(address) = addresses.min()
            {
                server.id = address.to_string();
            }
        }
    }
}

/// Connections to the informants of a node, to ask them where its server is.
struct Inquiry {
    directory: Arc<Directory>,
    credentials: Option<CredentialsProvider>,
    /// Those of the URL first, and then those of which others have told.
    informants: Vec<Informant>,
}

#[derive(Clone)]
struct Informant {
    info: ConnectionInfo,
    /// There is one once it has answered.
    connection: Option<MultiplexedConnection>,
}

impl Inquiry {
    fn of(informants: &Informants) -> Self {
        let directory = Arc::clone(&informants.directory);
        let known = directory.informants.iter().cloned();
        Self {
            // Sentinels have a user and a password of their own.
            credentials: informants
                .credentials
                .clone()
                .filter(|_| directory.is_cluster()),
            informants: known.map(Informant::at).collect(),
            directory,
        }
    }

    /// Asks all informants at once, and those of which they tell; tells of each answer.
    async fn ask_all(&mut self, limit: Duration, told: &watch::Sender<Arc<Round>>) {
        let mut round = Round::new(self);
        told.send_replace(Arc::new(round.clone()));
        let Self {
            directory,
            credentials,
            informants,
        } = self;
        let end = time::Instant::now() + limit;
        let ask = async |place: usize, informant: Informant| {
            let asked = informant.ask(directory, credentials.as_ref(), limit);
            let answer = timeout_at(end, asked).await;
            let answer = answer.unwrap_or_else(|_| Err("it does not answer".into()));
            (place, answer)
        };
        let known = informants.iter().cloned().enumerate();
        let mut asked: FuturesUnordered<_> = known
            .map(|(place, informant)| ask(place, informant))
            .collect();
        while let Some((place, answer)) = asked.next().await {
            let informant = &mut informants[place];
            informant.connection = None;
            match answer {
                Ok((connection, testimony)) => {
                    informant.connection = Some(connection);
                    for (host, port) in testimony.others() {
                        let found = Informant::at(directory.at(host, port));
                        let address = Address::of(&found.info);
                        let mut known = informants.iter();
                        if !known.any(|known| Address::of(&known.info) == address) {
                            asked.push(ask(informants.len(), found.clone()));
                            informants.push(found);
                        }
                    }
                    round.from.push(Address::of(&informants[place].info));
                    round.testimonies.push(testimony);
                }
                Err(why) => {
                    round.failed.push((Address::of(&informant.info), why));
                }
            }
            told.send_replace(Arc::new(round.clone()));
        }
        round.resolve(limit).await;
        round.is_complete = true;
        // Those that are still members are told of again.
        let mut place = 0..;
        informants.retain(|informant| {
            let is_of_url = place.next() < Some(directory.informants.len());
            is_of_url || informant.connection.is_some()
        });
        told.send_replace(Arc::new(round));
    }
}

impl Informant {
    const fn at(info: ConnectionInfo) -> Self {
        Self {
            info,
            connection: None,
        }
    }

    /// Asks it, and returns the connection for the next time, too.
    async fn ask(
        self,
        directory: &Directory,
        credentials: Option<&CredentialsProvider>,
        limit: Duration,
    ) -> Result<(MultiplexedConnection, Testimony), Arc<str>> {
        let connection = match self.connection {
            Some(connection) => connection,
            None => {
                let info = CredentialsProvider::completed(credentials, self.info.clone()).await?;
                greeting::connect(info, directory, limit).await?
            }
        };
        let mut one = connection.clone();
        let testimony = match &directory.subject {
            Subject::Master(name) => {
                let answer = ask_sentinel(&connection, name, directory).await?;
                answer.map(Testimony::Sentinel)
            }
            Subject::SlotOwner(_) => {
                let mut question = cmd("CLUSTER");
                let asked = question.arg("NODES").query_async(&mut one).await;
                let answer: String = asked.map_err(|error| why_no_cluster(&error))?;
                let host = match self.info.addr() {
                    ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
                    _ => "",
                };
                View::read(&answer, host, directory.has_tls()).map(Testimony::Member)
            }
        };
        Ok((connection, testimony.ok_or(NONSENSE)?))
    }
}

/// Asks a Sentinel for its own id and for a master.
async fn ask_sentinel(
    connection: &MultiplexedConnection,
    master: &str,
    directory: &Directory,
) -> Result<Option<SentinelAnswer>, Arc<str>> {
    let (mut one, mut other) = (connection.clone(), connection.clone());
    let (mut identity, mut question) = (cmd("SENTINEL"), cmd("SENTINEL"));
    identity.arg("MYID");
    question.arg("MASTER").arg(master);
    let asked = try_join(
        identity.query_async::<String>(&mut one),
        question.query_async(&mut other),
    );
    let (id, answer) = match asked.await {
        Ok(answered) => answered,
        Err(error) if texts::is_unknown_master(&error) => {
            let mut masters = cmd("SENTINEL");
            // Without the right to ask, none is named.
            let masters = masters.arg("MASTERS").query_async(&mut one).await;
            let masters: Vec<HashMap<String, String>> = masters.unwrap_or_default();
            let names = masters.iter().filter_map(|master| master.get("name"));
            return Err(texts::unknown_master(names.map(String::as_str)));
        }
        Err(error) => return Err(texts::why_no_sentinel(&error, directory)),
    };
    let Some(mut answer) = SentinelAnswer::read(&id, &answer) else {
        return Ok(None);
    };
    if answer.known > directory.informants.len() {
        // Some of them may be gone, and not forgotten. Without the right to ask, all of them count.
        let mut others = cmd("SENTINEL");
        others.arg("SENTINELS").arg(master);
        let others: Result<Vec<HashMap<String, String>>, _> = others.query_async(&mut one).await;
        if let Ok(others) = others {
            let is_down = |other: &HashMap<String, String>| {
                let flags = other.get("flags");
                flags.is_some_and(|flags| flags.contains("down") || flags.contains("disconnected"))
            };
            let gone = others.iter().filter(|other| is_down(other));
            answer.gone = gone.filter_map(address_of).collect();
            answer.running = 1 + others.iter().filter(|other| !is_down(other)).count();
        }
    }
    Ok(Some(answer))
}

/// Returns the address of a Sentinel, as another one knows it.
fn address_of(sentinel: &HashMap<String, String>) -> Option<String> {
    let (host, port) = (sentinel.get("ip")?, sentinel.get("port")?);
    let port: u16 = port.parse().ok()?;
    is_shown(host).then(|| format!("{host}:{port}"))
}

fn why_no_cluster(error: &RedisError) -> Arc<str> {
    let is_alone = |words: &str| words.contains("cluster support disabled");
    if error.detail().is_some_and(is_alone) || is_unknown_command(error) {
        "it is no part of a Cluster".into()
    } else {
        reason(error)
    }
}

/// It counts the time in suspend, too.
pub(super) const CLOCK: Clock = Clock::Boot;

/// How long an inquiry is behind the one before.
const PAUSE: Duration = Duration::from_secs(1);
