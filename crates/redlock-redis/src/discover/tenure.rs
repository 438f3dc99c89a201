//! The term of a session with a server that others name.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use deadpool_redis::redis::{Cmd, ConnectionInfo, RedisError, Value, cmd, from_redis_value};
use redlock_proto::{
    Confirms, Hearing, Instant, Judgement, Keyspace, Mark, NamedMark, Pair, Quarantine, Roll,
    Shortfall,
};
use tokio::time::timeout;

use super::{
    address::Address,
    poll::{Informants, Inquiries},
    round::InquiryRound,
    testimony::NamedServer,
    texts,
};
use crate::{
    boot_clock::now,
    speak::{error::reason, transport::Transport},
    tasks::Task,
};

/// For how long a session may send, and under which term; the informants are asked for as long as this is there.
///
/// Any two majorities have an informant in common that has kept its file, and none goes back to a smaller epoch.
/// So once a client counts on the promoted server, no client sends the old one anything that counts after
/// [`FOLLOWED_WITHIN`].
pub(crate) struct Tenure {
    state: Arc<Mutex<State>>,
    /// The address of the server.
    server: Arc<str>,
    /// Which servers are asked.
    informants: &'static str,
    _task: Task,
}

struct State {
    confirmed: Confirmed,
    /// With the term of the session.
    keyspace: Arc<Keyspace>,
}

#[derive(Clone, Copy)]
enum Confirmed {
    /// A majority named the pair in answer to a question of this moment.
    At(Instant),
    /// A majority names another server, or the same one under another epoch.
    Replaced,
    /// The slot is on its way.
    Moving,
}

/// The server of which an inquiry has told, before its mark is known.
pub(crate) struct Named {
    informants: Arc<Informants>,
    slot: u16,
    rounds: Inquiries,
    round: Arc<InquiryRound>,
    pair: Pair<NamedServer>,
    last_roll: LastRoll,
}

/// The roll by which a client has gone last, for a server that has lost its mark: it was the node's once, so it is safe to
/// go by.
pub(crate) type LastRoll = Arc<Mutex<Option<Roll>>>;

impl Named {
    /// Asks the informants for the server, and returns the one that most of them name.
    pub(crate) async fn ask(
        informants: &Arc<Informants>,
        slot: u16,
        last_roll: &LastRoll,
    ) -> Result<Self, Arc<str>> {
        let mut rounds = informants.poll().rounds().await;
        loop {
            let round = rounds.next().await?;
            // With a majority, the slow ones are waited for only if the mark wants it.
            let pair = match round.majority(slot) {
                None if round.is_complete => round.hearing(slot).candidate(),
                majority => majority,
            };
            if let Some(pair) = pair {
                return Ok(Self {
                    informants: Arc::clone(informants),
                    slot,
                    rounds,
                    round,
                    pair,
                    last_roll: Arc::clone(last_roll),
                });
            }
            if round.is_complete {
                let subject = &informants.url.subject;
                return Err(texts::no_majority(subject, &round, slot).into());
            }
        }
    }

    /// Returns how to connect to the server.
    pub(crate) fn info(&self) -> ConnectionInfo {
        let NamedServer { host, port, .. } = &self.pair.server;
        self.informants.url.at(host, *port)
    }

    /// Returns the term of a session with the server, over a connection to it.
    ///
    /// # Errors
    ///
    /// The server is not counted on.
    pub(crate) async fn begin(
        mut self,
        transport: Transport,
        keyspace: &Arc<Keyspace>,
    ) -> Result<Tenure, Arc<str>> {
        let mut marks = Marks {
            transport,
            keyspace: Arc::clone(keyspace),
            limit: self.informants.limit(),
        };
        let mut text = marks.read().await?;
        let mut judgement = self.judge(&marks, text.as_deref());
        if !matches!(judgement, Judgement::Counts(_)) && !self.round.is_complete {
            // The others may be on the roll, or belong there.
            self.round = self.rounds.complete().await?;
            judgement = self.judge(&marks, text.as_deref());
        }
        if judgement == Judgement::AsksAgain {
            let earlier = std::mem::replace(&mut self.round, self.rounds.again().await?);
            // A mark that another client has begun meanwhile may list fewer than have answered by now.
            text = marks.read().await?;
            let steady = self.hearing().steady(&earlier.hearing(self.slot));
            judgement = self.judge_by(&steady, &marks, text.as_deref());
        }
        let roll = match judgement {
            Judgement::Counts(roll) | Judgement::Lists(roll) => roll,
            Judgement::Relists(roll) => {
                let text = text.unwrap_or_default();
                if !marks.swap(&text, "").await? {
                    return Err("another client has changed its mark".into());
                }
                roll
            }
            Judgement::AsksAgain => return Err("its informants do not agree yet".into()),
            Judgement::Refused(shortfall) => {
                if shortfall == Shortfall::Moving {
                    // Keys go with the slot, and do not come back if the move is given up.
                    drop(marks.delete().await);
                }
                let subject = &self.informants.url.subject;
                return Err(texts::refused(&shortfall, subject, &self.round).into());
            }
        };
        Ok(Tenure::start(self, marks, roll))
    }

    fn hearing(&self) -> Hearing<NamedServer> {
        self.round.hearing(self.slot)
    }

    fn judge(&self, marks: &Marks, text: Option<&str>) -> Judgement {
        self.judge_by(&self.hearing(), marks, text)
    }

    /// Judges the server by its mark; without one, by the roll that this client has gone by last, if that is enough.
    fn judge_by(
        &self,
        hearing: &Hearing<NamedServer>,
        marks: &Marks,
        text: Option<&str>,
    ) -> Judgement {
        let stored = text.and_then(|text| marks.roll_of(text));
        let known = self
            .last_roll
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(known)) = (text, &*known)
            && let Judgement::Counts(roll) = hearing.judge(&self.pair, Some(known))
        {
            return Judgement::Counts(roll);
        }
        hearing.judge(&self.pair, stored.as_ref())
    }
}

impl Tenure {
    fn start(named: Named, marks: Marks, roll: Roll) -> Self {
        let Named {
            informants,
            slot,
            rounds,
            round,
            pair,
            last_roll,
        } = named;
        *last_roll.lock().unwrap_or_else(PoisonError::into_inner) = Some(roll.clone());
        let NamedServer { host, port, .. } = &pair.server;
        let info = informants.url.at(host, *port);
        if let Some(vote) = informants.url.vote().filter(|vote| vote.number() == 1)
            && let Some(why) = texts::too_many_votes(vote.of(), round.masters())
        {
            let node = informants.url.to_string();
            tracing::warn!(target: "redlock::node", node, "{why}");
        }
        let keyspace = Arc::new(marks.keyspace.in_term(NamedMark {
            epoch: pair.epoch,
            roll,
        }));
        let state = Arc::new(Mutex::new(State {
            confirmed: Confirmed::At(round.asked_at),
            keyspace,
        }));
        let watch = Watch {
            state: Arc::clone(&state),
            marks,
            pair,
            slot,
            earlier: None,
            last_roll,
        };
        let task = Task::start(watch.go_on(rounds));
        Self {
            state,
            server: Address::of(&info).to_string().into(),
            informants: informants.url.subject.informants(),
            _task: task,
        }
    }

    /// Returns the keyspace with the term of the session.
    pub(crate) fn keyspace(&self) -> Arc<Keyspace> {
        Arc::clone(&lock(&self.state).keyspace)
    }

    /// Returns the address of the server.
    pub(crate) fn server(&self) -> Arc<str> {
        Arc::clone(&self.server)
    }

    /// Returns why a call must not be sent to the server, if it must not.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        let confirmed = lock(&self.state).confirmed;
        let informants = self.informants;
        match confirmed {
            Confirmed::At(asked_at) => {
                let age = now().saturating_since(asked_at);
                (age > FOLLOWED_WITHIN).then(|| {
                    format!("a majority of {informants} has not confirmed for five seconds that it is the master").into()
                })
            }
            Confirmed::Replaced => Some(
                format!("{informants} name another server, or another term of this one").into(),
            ),
            Confirmed::Moving => Some("its slot is on its way to another server".into()),
        }
    }
}

/// The watch over a session: each inquiry confirms its term, or ends it.
struct Watch {
    state: Arc<Mutex<State>>,
    marks: Marks,
    pair: Pair<NamedServer>,
    slot: u16,
    /// The answers of the inquiry before.
    earlier: Option<Hearing<NamedServer>>,
    last_roll: LastRoll,
}

impl Watch {
    async fn go_on(mut self, mut rounds: Inquiries) {
        while let Ok(round) = rounds.complete().await {
            if self.on_round(&round).await.is_none() {
                return;
            }
            self.earlier = Some(round.hearing(self.slot));
        }
    }

    /// Takes in an inquiry; `None` if the session is over.
    async fn on_round(&mut self, round: &InquiryRound) -> Option<()> {
        let hearing = round.hearing(self.slot);
        let mut roll = self.roll();
        let mut confirms = hearing.confirms(&self.pair, &roll);
        if confirms == Confirms::Unknown
            && hearing.support(&self.pair) >= roll.majority()
            // Another client may have changed the roll.
            && let Some(stored) = self.stored().await
            && stored != roll
        {
            confirms = hearing.confirms(&self.pair, &stored);
            self.set_roll(stored.clone());
            roll = stored;
        }
        match confirms {
            Confirms::Same => {
                lock(&self.state).confirmed = Confirmed::At(round.asked_at);
                let steady = self.earlier.as_ref().map(|earlier| hearing.steady(earlier));
                if let Some(steady) = steady
                    && steady.extended(&self.pair, &roll).is_some()
                {
                    self.extend(&steady).await;
                }
            }
            Confirms::Another => {
                lock(&self.state).confirmed = Confirmed::Replaced;
                return None;
            }
            Confirms::Moving => {
                // Keys go with the slot, and do not come back if the move is given up.
                drop(self.marks.delete().await);
                lock(&self.state).confirmed = Confirmed::Moving;
                return None;
            }
            Confirms::Unknown => {}
        }
        Some(())
    }

    /// Puts informants on the roll of the mark that have joined.
    async fn extend(&self, steady: &Hearing<NamedServer>) {
        let mut marks = self.marks.clone();
        let Ok(Some(text)) = marks.read().await else {
            return;
        };
        let Some(mark) = Mark::read(&text).filter(|mark| self.is_of_term(mark)) else {
            return;
        };
        let stored = mark.term().map(|term| &term.roll);
        let extended = stored.and_then(|roll| steady.extended(&self.pair, roll));
        if let Some(roll) = extended
            && let Some(changed) = mark.with_roll(&roll)
            // A mark in quarantine changes with each look; the next inquiry tries again.
            && let Ok(true) = marks.swap(&text, &changed).await
        {
            self.set_roll(roll);
        }
    }

    /// Returns the roll of the mark, if that is of this term.
    async fn stored(&self) -> Option<Roll> {
        let mut marks = self.marks.clone();
        let text = marks.read().await.ok()??;
        let mark = Mark::read(&text).filter(|mark| self.is_of_term(mark))?;
        mark.term().map(|term| term.roll.clone())
    }

    fn is_of_term(&self, mark: &Mark<'_>) -> bool {
        let epoch = mark.term().map(|term| term.epoch);
        epoch == Some(self.pair.epoch) && mark.has_policy_of(&self.marks.keyspace)
    }

    fn roll(&self) -> Roll {
        let state = lock(&self.state);
        // invariant: the keyspace was made with a term
        let term = state.keyspace.term().expect("a session has a term");
        term.roll.clone()
    }

    fn set_roll(&self, roll: Roll) {
        let epoch = self.pair.epoch;
        *self
            .last_roll
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(roll.clone());
        let keyspace = self.marks.keyspace.in_term(NamedMark { epoch, roll });
        lock(&self.state).keyspace = Arc::new(keyspace);
    }
}

/// The mark of a server, as a client reads and replaces it beside its calls.
#[derive(Clone)]
struct Marks {
    transport: Transport,
    /// Without a term.
    keyspace: Arc<Keyspace>,
    limit: Duration,
}

impl Marks {
    /// Returns the text of the mark, if there is one.
    async fn read(&mut self) -> Result<Option<String>, Arc<str>> {
        let mut read = cmd("MGET");
        read.arg(self.keyspace.mark().as_str());
        let value = self.ask(&read).await?;
        let texts: Vec<Option<Vec<u8>>> = from_redis_value(value).unwrap_or_default();
        let text = texts.into_iter().next().flatten();
        Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    /// Returns the roll of a mark; `None` if it is damaged or of another policy, of which the first call tells.
    fn roll_of(&self, text: &str) -> Option<Roll> {
        let mark = Mark::read(text)?;
        let term = mark.term().filter(|_| mark.has_policy_of(&self.keyspace))?;
        Some(term.roll.clone())
    }

    /// Replaces the mark if its text is still this one, or deletes it if there is no other text; returns whether it was.
    async fn swap(&mut self, expected: &str, text: &str) -> Result<bool, Arc<str>> {
        let mut swap = cmd("EVAL");
        swap.arg(SWAP).arg(1).arg(self.keyspace.mark().as_str());
        swap.arg(expected).arg(text);
        Ok(self.ask(&swap).await? == Value::Int(1))
    }

    /// Deletes the mark, so that a quarantine begins.
    async fn delete(&mut self) -> Result<(), Arc<str>> {
        let mut delete = cmd("DEL");
        delete.arg(self.keyspace.mark().as_str());
        self.ask(&delete).await.map(drop)
    }

    async fn ask(&mut self, command: &Cmd) -> Result<Value, Arc<str>> {
        let asked = timeout(self.limit, self.transport.ask(command)).await;
        let asked = asked.map_err(|_| "it does not answer")?;
        asked.map_err(|error: RedisError| reason(&error))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while the lock is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces a mark that is still the one that was read, or deletes it.
const SWAP: &str = "\
if redis.call('MGET', KEYS[1])[1] ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1";

/// For how long the word of a majority counts.
const FOLLOWED_WITHIN: Duration = Quarantine::FOLLOWED_WITHIN;
