//! Inquiries: all informants are asked at once, once a second for as long as a session needs it.
//!
//! The votes of a Cluster have the same informants, so a client asks these once for all of its votes.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use deadpool_redis::redis::{
    ConnectionAddr, ConnectionInfo, RedisError, aio::MultiplexedConnection, cmd,
};
use futures_util::{StreamExt, future::try_join, stream::FuturesUnordered};
use redlock_proto::Instant;
use tokio::{
    sync::{Notify, watch},
    time::{self, timeout, timeout_at},
};

#[cfg(feature = "deadpool-redis")]
use super::report::NamingReport;
use super::{
    address::Address,
    greeting,
    naming_url::{NamingUrl, Subject},
    round::InquiryRound,
    testimony::{SentinelAnswer, Testimony, View, is_shown},
    texts,
};
use crate::{
    CredentialsProvider,
    boot_clock::now,
    speak::error::{NONSENSE, NotOpened, is_unknown_command, reason},
    tasks::Task,
};

/// The informants of a node, or of all votes of a Cluster, and how long they have.
pub(crate) struct Informants {
    pub(super) url: Arc<NamingUrl>,
    /// What gives the credentials for the server, and for the nodes of a Cluster.
    pub(crate) credentials: Option<CredentialsProvider>,
    pub(crate) connect_timeout: Duration,
    /// Their present inquiries, as long as a session needs these.
    poll: Mutex<Weak<Poll>>,
}

/// Those of a client that its nodes may have in common.
#[derive(Default)]
pub struct Polls(Vec<Arc<Informants>>);

impl fmt::Debug for Polls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Polls").finish_non_exhaustive()
    }
}

impl Polls {
    /// Returns the informants of a url, the same ones for all votes of a Cluster.
    pub(crate) fn of(
        &mut self,
        url: NamingUrl,
        credentials: Option<CredentialsProvider>,
        connect_timeout: Duration,
    ) -> Arc<Informants> {
        let is_same = |known: &&Arc<Informants>| known.url.has_same_members(&url);
        if let Some(known) = self.0.iter().find(is_same) {
            return Arc::clone(known);
        }
        let informants = Informants::new(url, credentials, connect_timeout);
        let informants = Arc::new(informants);
        self.0.push(Arc::clone(&informants));
        informants
    }
}

impl Informants {
    pub(crate) fn new(
        url: NamingUrl,
        credentials: Option<CredentialsProvider>,
        connect_timeout: Duration,
    ) -> Self {
        Self {
            url: Arc::new(url),
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
    pub(crate) fn not_opened(&self, server: &Address, why: &NotOpened) -> String {
        texts::no_server(&self.url, server, why)
    }

    /// Returns how long an informant may take to answer, and a server to say what its mark is.
    pub(super) fn limit(&self) -> Duration {
        self.connect_timeout / 2
    }

    /// Asks all of them, and returns what each says.
    #[cfg(feature = "deadpool-redis")]
    pub(crate) async fn report(&self, slot: u16) -> Result<NamingReport, Arc<str>> {
        let mut rounds = self.poll().rounds().await;
        let round = rounds.complete().await?;
        Ok(NamingReport::of(&self.url, &round, slot))
    }

    /// Returns how to connect to the server that a majority names now.
    #[cfg(feature = "deadpool-redis")]
    pub(crate) async fn located(&self, slot: u16) -> Result<ConnectionInfo, Arc<str>> {
        let mut rounds = self.poll().rounds().await;
        loop {
            let round = rounds.next().await?;
            if let Some(pair) = round.majority(slot) {
                return Ok(self.url.at(&pair.server.host, pair.server.port));
            }
            if round.is_complete {
                return Err(texts::no_majority(&self.url.subject, &round, slot).into());
            }
        }
    }
}

/// The inquiries that go on while this is there.
pub(super) struct Poll {
    rounds: watch::Receiver<Arc<InquiryRound>>,
    /// A caller that waits for an inquiry has the next one begin at once.
    wanted: Arc<Notify>,
    _task: Task,
}

/// The inquiries from a moment on, one after the other.
pub(super) struct Inquiries {
    rounds: watch::Receiver<Arc<InquiryRound>>,
    since: Instant,
    /// They end with it.
    poll: Arc<Poll>,
}

impl Poll {
    fn start(mut inquiry: Inquiry, limit: Duration) -> Self {
        let (told, rounds) = watch::channel(Arc::new(InquiryRound::new(&inquiry.url)));
        let wanted = Arc::new(Notify::new());
        let calls = Arc::clone(&wanted);
        let task = Task::start(async move {
            loop {
                inquiry.ask_all(limit, &told).await;
                // An inquiry that is wanted meanwhile begins at once.
                drop(timeout(PAUSE, calls.notified()).await);
            }
        });
        Self {
            rounds,
            wanted,
            _task: task,
        }
    }

    /// Returns the inquiries from now on, the first of which begins at once.
    pub(super) async fn rounds(self: Arc<Self>) -> Inquiries {
        let mut rounds = self.rounds.clone();
        let known = rounds.borrow_and_update().clone();
        let since = if known.is_complete {
            self.wanted.notify_one();
            now()
        } else {
            known.asked_at
        };
        Inquiries {
            rounds,
            since,
            poll: self,
        }
    }
}

impl Inquiries {
    /// Waits for the next answer.
    ///
    /// # Errors
    ///
    /// The inquiries have ended, with their runtime.
    pub(super) async fn next(&mut self) -> Result<Arc<InquiryRound>, Arc<str>> {
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
    pub(super) async fn again(&mut self) -> Result<Arc<InquiryRound>, Arc<str>> {
        self.since = now();
        self.poll.wanted.notify_one();
        self.complete().await
    }

    /// Waits until an inquiry is complete.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub(super) async fn complete(&mut self) -> Result<Arc<InquiryRound>, Arc<str>> {
        loop {
            let round = self.next().await?;
            if round.is_complete {
                return Ok(round);
            }
        }
    }
}

/// Connections to the informants of a node, to ask them where its server is.
struct Inquiry {
    url: Arc<NamingUrl>,
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
        let url = Arc::clone(&informants.url);
        let known = url.informants.iter().cloned();
        Self {
            // Sentinels have a user and a password of their own.
            credentials: informants.credentials.clone().filter(|_| url.is_cluster()),
            informants: known.map(Informant::at).collect(),
            url,
        }
    }

    /// Asks all informants at once, and those of which they tell; tells of each answer.
    async fn ask_all(&mut self, limit: Duration, told: &watch::Sender<Arc<InquiryRound>>) {
        let mut round = InquiryRound::new(&self.url);
        told.send_replace(Arc::new(round.clone()));
        let Self {
            url,
            credentials,
            informants,
        } = self;
        let end = time::Instant::now() + limit;
        let ask = async |place: usize, informant: Informant| {
            let asked = informant.ask(url, credentials.as_ref(), limit);
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
                        let found = Informant::at(url.at(host, port));
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
            let is_of_url = place.next() < Some(url.informants.len());
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
        url: &NamingUrl,
        credentials: Option<&CredentialsProvider>,
        limit: Duration,
    ) -> Result<(MultiplexedConnection, Testimony), Arc<str>> {
        let connection = match self.connection {
            Some(connection) => connection,
            None => {
                let info = CredentialsProvider::completed(credentials, self.info.clone()).await?;
                greeting::connect(info, url, limit).await?
            }
        };
        let mut one = connection.clone();
        let testimony = match &url.subject {
            Subject::Master(name) => {
                let answer = ask_sentinel(&connection, name, url).await?;
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
                View::read(&answer, host, url.has_tls()).map(Testimony::Member)
            }
        };
        Ok((connection, testimony.ok_or(NONSENSE)?))
    }
}

/// Asks a Sentinel for its own id and for a master.
async fn ask_sentinel(
    connection: &MultiplexedConnection,
    master: &str,
    url: &NamingUrl,
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
        Err(error) => return Err(texts::why_no_sentinel(&error, url)),
    };
    let Some(mut answer) = SentinelAnswer::read(&id, &answer) else {
        return Ok(None);
    };
    if answer.known > url.informants.len() {
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
        "it is no part of a Cluster; name nodes of one, or write redis:// for a server alone".into()
    } else {
        reason(error)
    }
}

/// How long an inquiry is behind the one before.
const PAUSE: Duration = Duration::from_secs(1);
