//! A world of one node with two servers, and of the informants that name them, at a moment.

/// The most informants.
pub(super) const INFORMANTS: usize = 5;
/// How many servers the node has.
pub(super) const SERVERS: usize = 2;
/// How many clients there are.
pub(super) const CLIENTS: usize = 2;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct State {
    pub(super) informants: [Informant; INFORMANTS],
    pub(super) servers: [Server; SERVERS],
    pub(super) clients: [Client; CLIENTS],
    /// The inquiry that is going on, if one is.
    pub(super) inquiry: Option<Inquiry>,
    /// How often informants have lost their files.
    pub(super) lost: u8,
    /// How often informants were replaced.
    pub(super) replaced: u8,
    /// How often servers were restarted.
    pub(super) restarts: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Informant {
    /// The server of the pair that it keeps.
    pub(super) server: u8,
    /// The epoch of this pair.
    pub(super) epoch: u8,
    /// The greatest epoch of which it knows; it votes for a greater one only.
    pub(super) seen: u8,
    pub(super) failover: Failover,
    /// Whether it was made to forget the others, and knows only those that were too.
    pub(super) was_reset: bool,
}

/// How far an informant is with a failover that it leads.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Failover {
    #[default]
    None,
    /// It was elected for this epoch.
    Elected(u8),
    /// It has promoted the other server, and still tells clients of the old one.
    Promoted,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Server {
    pub(super) is_master: bool,
    pub(super) mark: Mark,
    /// The client that has the key.
    pub(super) key: Option<u8>,
    /// How long it has the key.
    pub(super) ttl: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Mark {
    pub(super) kind: MarkKind,
    pub(super) epoch: u8,
    pub(super) roll: Ids,
    /// The age of the quarantine.
    pub(super) age: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum MarkKind {
    #[default]
    None,
    /// It names another run or other data than the server has.
    Foreign,
    Quarantined,
    Voting,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Client {
    pub(super) session: Option<Session>,
    /// How long it still has a lease.
    pub(super) lease: u8,
    /// A request on its way.
    pub(super) request: Option<Request>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Session {
    pub(super) pair: Pair,
    pub(super) roll: Ids,
    /// How long ago the question was asked whose answers confirmed it.
    pub(super) age: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Request {
    pub(super) pair: Pair,
    pub(super) roll: Ids,
    /// How long ago it was sent.
    pub(super) age: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Inquiry {
    /// The client that asks.
    pub(super) by: u8,
    /// How long ago it was begun.
    pub(super) age: u8,
    pub(super) answers: Answers,
    /// Whether the informants have answered at the same moment.
    pub(super) is_steady: bool,
}

/// A server, and the epoch under which it is named.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Pair {
    pub(super) server: u8,
    pub(super) epoch: u8,
}

/// A set of ids.
///
/// An id that no informant has any longer matters only while an answer of it is not evaluated.
/// So each informant has its present id, and perhaps a former one, of which an answer is left.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Ids {
    /// The informants whose present id is in the set, as bits.
    pub(super) present: u8,
    /// The informants whose former id is in the set, as bits.
    pub(super) former: u8,
}

/// The answers of an inquiry.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Answers {
    /// Of each informant, the [code](Pair::code) of the pair that it named, or 0 if it has not answered.
    pub(super) named: [u8; INFORMANTS],
    /// The informants that have lost their id since, as bits.
    pub(super) former: u8,
    /// The informants whose id is younger than the inquiry, as bits.
    pub(super) young: u8,
}

impl Default for State {
    fn default() -> Self {
        let mut servers = [Server::default(); SERVERS];
        servers[0] = Server {
            is_master: true,
            mark: Mark {
                kind: MarkKind::Voting,
                roll: Ids::ALL,
                ..Mark::default()
            },
            ..Server::default()
        };
        Self {
            informants: [Informant::default(); INFORMANTS],
            servers,
            clients: [Client::default(); CLIENTS],
            inquiry: None,
            lost: 0,
            replaced: 0,
            restarts: 0,
        }
    }
}

impl State {
    /// Returns how many informants were made to forget the others.
    pub(super) fn resets(&self) -> u8 {
        let resets = self.informants.iter().filter(|it| it.was_reset).count();
        u8::try_from(resets).unwrap_or(u8::MAX)
    }

    /// Gives an informant another id: the present one is in no set.
    pub(super) fn renew_id(&mut self, informant: usize) {
        let bit = 1 << informant;
        let mut is_heard = false;
        if let Some(Inquiry { answers, .. }) = &mut self.inquiry {
            if answers.named[informant] == 0 {
                answers.young |= bit;
            } else if answers.former & bit == 0 {
                answers.former |= bit;
                is_heard = true;
            }
        }
        for ids in self.sets() {
            if is_heard {
                ids.former |= ids.present & bit;
            }
            ids.present &= !bit;
        }
    }

    /// Forgets former ids of which no answer is left.
    pub(super) fn forget_former(&mut self) {
        let former = self.inquiry.map_or(0, |it| it.answers.former);
        for ids in self.sets() {
            ids.former &= former;
        }
    }

    /// Returns all sets of ids that something rests on.
    fn sets(&mut self) -> impl Iterator<Item = &mut Ids> {
        let marks = self.servers.iter_mut().map(|it| &mut it.mark.roll);
        let clients = self.clients.iter_mut().flat_map(|client| {
            let session = client.session.as_mut().map(|it| &mut it.roll);
            let request = client.request.as_mut().map(|it| &mut it.roll);
            session.into_iter().chain(request)
        });
        marks.chain(clients)
    }
}

impl Inquiry {
    /// Returns the inquiry of a client that begins.
    pub(super) fn of(by: usize) -> Self {
        Self {
            by: u8::from(by == 1),
            ..Self::default()
        }
    }
}

impl Informant {
    /// Returns what it tells clients: until its failover is over, the old server under the new epoch.
    pub(super) const fn tells(&self) -> Pair {
        Pair {
            server: self.server,
            epoch: self.epoch,
        }
    }

    /// Returns the server that it tells the other informants of.
    pub(super) fn advertises(&self) -> u8 {
        if self.failover == Failover::Promoted {
            other(self.server)
        } else {
            self.server
        }
    }
}

impl Mark {
    /// Returns the mark of a quarantine that begins.
    pub(super) const fn quarantine(epoch: u8, roll: Ids) -> Self {
        Self {
            kind: MarkKind::Quarantined,
            epoch,
            roll,
            age: 0,
        }
    }

    /// Makes it the mark of another run, if there is one.
    pub(super) fn estrange(&mut self) {
        if self.kind != MarkKind::None {
            self.kind = MarkKind::Foreign;
            self.age = 0;
        }
    }
}

impl Pair {
    /// Returns its number, from 1.
    pub(super) const fn code(self) -> u8 {
        1 + self.server + 2 * self.epoch
    }

    /// Returns the pair of such a number.
    pub(super) fn of(code: u8) -> Option<Self> {
        let code = code.checked_sub(1)?;
        Some(Self {
            server: code % 2,
            epoch: code / 2,
        })
    }
}

impl Ids {
    /// The present ids of all informants.
    pub(super) const ALL: Self = Self {
        present: u8::MAX,
        former: 0,
    };
}

impl Answers {
    /// Returns the informants that have answered, as bits.
    pub(super) fn heard(&self) -> u8 {
        let heard = (0..INFORMANTS).filter(|place| self.named[*place] > 0);
        heard.fold(0, |set, place| set | 1 << place)
    }
}

/// Returns the other one of two servers, or of two clients.
pub(super) const fn other(one: u8) -> u8 {
    1 - one
}
