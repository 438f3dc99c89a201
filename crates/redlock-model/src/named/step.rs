//! Something that happens, and something that must not.

use std::fmt;

use super::state::{Answers, Ids, Pair};

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// All clocks go on.
    Tick,
    /// An informant is elected to make the other server the master.
    Elect {
        leader: usize,
        voters: u8,
        epoch: u8,
        server: u8,
        promotes: bool,
    },
    /// It does so.
    Promote { leader: usize },
    /// It gives up before it has done so.
    Abandon { leader: usize },
    /// Its failover is over.
    End { leader: usize },
    /// An informant takes the pair of another one.
    Hello {
        from: usize,
        to: usize,
        server: u8,
        epoch: u8,
    },
    /// An informant makes the server a replica that it does not name.
    Demote { informant: usize, server: u8 },
    /// An informant loses its file.
    Lose { informant: usize },
    /// An informant is replaced by one that was told of a server.
    Replace { informant: usize, server: u8 },
    /// An informant is made to forget the others.
    Reset { informant: usize },
    /// A replica gets the data of its master.
    Replicate { to: usize },
    /// A server restarts.
    Restart { server: usize, keeps: bool },
    /// A client asks all informants, and acts on the answers at once.
    Inquire {
        by: usize,
        answers: Answers,
        outcome: Outcome,
    },
    /// A client asks all informants.
    Ask { by: usize },
    /// An answer reaches it.
    Hear { by: usize, from: usize, pair: Pair },
    /// It knows what these informants named at the same moment, because they name it before and after.
    HearSteady { by: usize, answers: Answers },
    /// It acts on the answers that it has.
    Conclude {
        by: usize,
        answers: Answers,
        outcome: Outcome,
    },
    /// A client ends its session.
    Leave { by: usize },
    /// A client sends a request, which is carried out at once.
    Call { by: usize, server: u8, reply: Reply },
    /// A client sends a request, which takes its time.
    Send { by: usize, server: u8 },
    /// Such a request is carried out.
    Arrive { by: usize, server: u8, reply: Reply },
}

/// What a client does with the answers of an inquiry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// It counts on a server, by rules without terms.
    Follows { server: u8 },
    /// It counts on a server by the roll of its mark.
    Counts { pair: Pair, roll: Ids },
    /// It counts on a server without a mark.
    Lists { pair: Pair, roll: Ids },
    /// It deletes the mark of a server, and counts on it.
    Relists { pair: Pair, roll: Ids },
    /// It goes on with its session, by this roll.
    Confirms { roll: Ids },
    /// It goes on with its session, and puts this roll into the mark.
    Extends { roll: Ids },
    /// Its session has this roll, and is not confirmed.
    Adopts { roll: Ids },
    /// It ends its session.
    Closes,
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reply {
    /// It is a replica.
    Replica,
    /// It begins a quarantine.
    Begins,
    /// It does not vote yet.
    Quarantined,
    /// Another client has the key.
    Taken,
    /// The client has a lease.
    Granted,
    /// The client does not count it any longer.
    GrantedLate,
}

/// Both clients have a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Breach;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Tick => f.write_str("a step of the clocks"),
            Self::Elect {
                leader,
                voters,
                epoch,
                server,
                promotes,
            } => {
                let (leader, server) = (Informant(leader), Server(server));
                let does = if promotes { "promotes" } else { "will promote" };
                let voters = Set(voters);
                write!(
                    f,
                    "{leader} is elected by {voters} for epoch {epoch}, and {does} {server}"
                )
            }
            Self::Promote { leader } => {
                write!(f, "{} promotes the server", Informant(leader))
            }
            Self::Abandon { leader } => write!(f, "{} gives its failover up", Informant(leader)),
            Self::End { leader } => {
                write!(f, "the failover of {} is over", Informant(leader))
            }
            Self::Hello {
                from,
                to,
                server,
                epoch,
            } => {
                let (from, to, pair) = (Informant(from), Informant(to), Pair { server, epoch });
                write!(f, "{to} takes {pair} from {from}")
            }
            Self::Demote { informant, server } => {
                let (informant, server) = (Informant(informant), Server(server));
                write!(f, "{informant} makes {server} a replica")
            }
            Self::Lose { informant } => {
                let pair = Pair::default();
                write!(
                    f,
                    "{} loses its file: {pair}, another id",
                    Informant(informant)
                )
            }
            Self::Replace { informant, server } => {
                let (informant, pair) = (Informant(informant), Pair { server, epoch: 0 });
                write!(f, "{informant} is replaced: {pair}, another id")
            }
            Self::Reset { informant } => {
                write!(
                    f,
                    "{} forgets those that were not reset",
                    Informant(informant)
                )
            }
            Self::Replicate { to } => {
                let (to, from) = (Server::at(to), Server::at(1 - to));
                write!(f, "{to} has the data of {from}, and its mark")
            }
            Self::Restart { server, keeps } => {
                let how = if keeps { "with" } else { "without" };
                write!(f, "{} restarts {how} its data", Server::at(server))
            }
            Self::Inquire {
                by,
                answers,
                outcome,
            } => {
                write!(f, "{} hears {answers}: it {outcome}", Client(by))
            }
            Self::Ask { by } => write!(f, "{} asks all informants", Client(by)),
            Self::Hear { by, from, pair } => {
                let (by, from) = (Client(by), Informant(from));
                write!(f, "{by} hears {pair} from {from}")
            }
            Self::HearSteady { by, answers } => {
                write!(f, "{} hears {answers}, twice", Client(by))
            }
            Self::Conclude {
                by,
                answers,
                outcome,
            } => {
                write!(f, "{} has heard {answers}: it {outcome}", Client(by))
            }
            Self::Leave { by } => write!(f, "{} ends its session", Client(by)),
            Self::Call { by, server, reply } => {
                write!(f, "{} calls {}: {reply}", Client(by), Server(server))
            }
            Self::Send { by, server } => {
                write!(f, "{} sends a request to {}", Client(by), Server(server))
            }
            Self::Arrive { by, server, reply } => {
                let (by, server) = (Client(by), Server(server));
                write!(f, "the request of {by} reaches {server}: {reply}")
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Follows { server } => write!(f, "counts on {}", Server(server)),
            Self::Counts { pair, roll } => write!(f, "counts on {pair}, by the roll {roll}"),
            Self::Lists { pair, roll } => {
                write!(f, "counts on {pair}, which has no mark, by the roll {roll}")
            }
            Self::Relists { pair, roll } => {
                write!(
                    f,
                    "deletes the mark and counts on {pair}, by the roll {roll}"
                )
            }
            Self::Confirms { roll } => write!(f, "goes on, by the roll {roll}"),
            Self::Extends { roll } => write!(f, "goes on, and extends the roll to {roll}"),
            Self::Adopts { roll } => write!(f, "takes the roll {roll} from the mark"),
            Self::Closes => f.write_str("ends its session"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replica => "it is a replica",
            Self::Begins => "a quarantine begins",
            Self::Quarantined => "the quarantine goes on",
            Self::Taken => "the other client has the key",
            Self::Granted => "a lease",
            Self::GrantedLate => "the key, too late for a lease",
        })
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("x has a lease beside y")
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Server(self.server), self.epoch)
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.named.into_iter().map(Pair::of).enumerate();
        let pairs = pairs.filter_map(|(place, pair)| Some((Informant(place), pair?)));
        for (turn, (informant, pair)) in pairs.enumerate() {
            let comma = if turn > 0 { ", " } else { "" };
            write!(f, "{comma}{pair} from {informant}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", Set(self.present))?;
        if self.former != 0 {
            write!(f, ", ended {}", Set(self.former))?;
        }
        f.write_str("]")
    }
}

struct Informant(usize);

impl fmt::Display for Informant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}", self.0 + 1)
    }
}

struct Set(u8);

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = (0..super::state::INFORMANTS).filter(|it| self.0 >> it & 1 == 1);
        for (turn, member) in members.enumerate() {
            let comma = if turn > 0 { " " } else { "" };
            write!(f, "{comma}{}", Informant(member))?;
        }
        Ok(())
    }
}

struct Server(u8);

impl Server {
    fn at(place: usize) -> Self {
        Self(u8::from(place == 1))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == 0 { "A" } else { "B" })
    }
}

struct Client(usize);

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == 0 { "x" } else { "y" })
    }
}
