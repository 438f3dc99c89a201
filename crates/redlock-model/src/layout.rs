//! A state as 128 bits, so that tens of millions fit into memory.
//!
//! What a node or a client says first tells what else it has to say, so nothing is spent on floors and
//! readings of nodes that never crashed, nor on the votes of clients that no longer count them.

use crate::{
    Scope,
    state::{Client, Exchange, Node, Phase, Reading, Standing, State},
};

/// How many bits each part of a state takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    nodes: usize,
    clients: usize,
    /// Whether readings are taken during the quarantine too.
    early: bool,
    crashes: u32,
    standing: u32,
    key: u32,
    value: u32,
    reading: u32,
    proposal: u32,
    /// How many ways there are to be with one node while votes are collected.
    vote_codes: u32,
    /// The bits of that for all nodes at once: five digits of 20 take fewer than five times five bits.
    votes: u32,
}

impl Layout {
    /// The layout for states of this scope.
    pub(crate) fn new(scope: Scope, early: bool) -> Self {
        let greatest = u32::from(scope.greatest());
        let vote_codes = vote_code(Exchange::Vote(scope.greatest())) + 1;
        let nodes = count(scope.nodes());
        Self {
            nodes: scope.nodes(),
            clients: scope.clients(),
            early,
            crashes: width(scope.crashes().into()),
            standing: if scope.crashes() > 0 { 2 } else { 0 },
            key: width(count(scope.clients())),
            value: width(greatest),
            reading: width(reading_code(Some(Reading {
                voting: true,
                known: scope.greatest(),
            }))),
            proposal: width(scope.proposals().into()),
            vote_codes,
            votes: width(vote_codes.saturating_pow(nodes) - 1),
        }
    }

    /// The bits that a state of this scope takes at most.
    pub(crate) fn bits(scope: Scope) -> u32 {
        let layout = Self::new(scope, false);
        let (nodes, clients) = (count(layout.nodes), count(layout.clients));
        let acquiring = 1 + layout.proposal + layout.value + layout.votes;
        let writing_back = PHASE + layout.proposal + 2 * layout.value + nodes * OTHER;
        let crashed = nodes.min(scope.crashes().into());
        layout.crashes
            + nodes * (layout.standing + layout.key + layout.value)
            + crashed * layout.value.max(nodes * layout.reading)
            + clients * acquiring.max(writing_back)
    }

    pub(crate) fn encode(&self, state: &State) -> u128 {
        let mut bits = Writer::default();
        bits.put(state.crashes.into(), self.crashes);
        for node in &state.nodes[..self.nodes] {
            bits.put(standing_code(node), self.standing);
            bits.put(node.key.map_or(0, |client| u32::from(client) + 1), self.key);
            bits.put(node.counter.into(), self.value);
            if node.floor > 0 {
                bits.put(node.floor.into(), self.value);
            }
            if self.has_readings(node.standing) {
                for reading in &node.readings[..self.nodes] {
                    bits.put(reading_code(*reading), self.reading);
                }
            }
        }
        for client in &state.clients[..self.clients] {
            self.encode_client(client, &mut bits);
        }
        bits.bits
    }

    fn encode_client(&self, client: &Client, bits: &mut Writer) {
        let acquiring = client.phase == Phase::Acquiring;
        // The phase in which there is most to say takes one bit, the others three.
        if acquiring {
            bits.put(0, 1);
        } else {
            bits.put(phase_code(client.phase), PHASE);
        }
        if client.phase == Phase::Idle {
            return;
        }
        bits.put(client.proposal.into(), self.proposal);
        if client.is_undecided() {
            bits.put(client.before.into(), self.value);
        }
        if acquiring {
            let digits = client.at[..self.nodes].iter().rev();
            let votes = digits.fold(0, |votes, at| votes * self.vote_codes + vote_code(*at));
            bits.put(votes, self.votes);
        } else {
            bits.put(client.token.into(), self.value);
            for exchange in &client.at[..self.nodes] {
                bits.put(other_code(*exchange), OTHER);
            }
        }
    }

    pub(crate) fn decode(&self, bits: u128) -> State {
        let mut bits = Reader(bits);
        let mut state = State {
            crashes: bits.take_number(self.crashes),
            ..State::default()
        };
        for node in &mut state.nodes[..self.nodes] {
            let standing = bits.take(self.standing);
            node.standing = match standing {
                QUARANTINED => Standing::Quarantined,
                AGED => Standing::Aged,
                _ => Standing::Voting,
            };
            node.key = bits.take_number(self.key).checked_sub(1);
            node.counter = bits.take_number(self.value);
            if standing == SEEDED {
                node.floor = bits.take_number(self.value);
            }
            if self.has_readings(node.standing) {
                for reading in &mut node.readings[..self.nodes] {
                    *reading = reading_of(bits.take_number(self.reading));
                }
            }
        }
        for client in &mut state.clients[..self.clients] {
            self.decode_client(client, &mut bits);
        }
        state
    }

    fn decode_client(&self, client: &mut Client, bits: &mut Reader) {
        client.phase = match bits.take(1) {
            0 => Phase::Acquiring,
            _ => phase_of(bits.take(PHASE - 1)),
        };
        if client.phase == Phase::Idle {
            return;
        }
        client.proposal = bits.take_number(self.proposal);
        if client.is_undecided() {
            client.before = bits.take_number(self.value);
        }
        if client.phase == Phase::Acquiring {
            let mut votes = bits.take(self.votes);
            for exchange in &mut client.at[..self.nodes] {
                *exchange = exchange_of_vote(votes % self.vote_codes);
                votes /= self.vote_codes;
            }
        } else {
            client.token = bits.take_number(self.value);
            for exchange in &mut client.at[..self.nodes] {
                *exchange = exchange_of_other(bits.take(OTHER));
            }
        }
    }

    fn has_readings(&self, standing: Standing) -> bool {
        match standing {
            Standing::Voting => false,
            Standing::Quarantined => self.early,
            Standing::Aged => true,
        }
    }
}

/// The bits of a phase other than [`Phase::Acquiring`].
const PHASE: u32 = 3;

/// The bits of an exchange of a client that no longer collects votes.
const OTHER: u32 = 2;

const SEEDED: u32 = 1;
const QUARANTINED: u32 = 2;
const AGED: u32 = 3;

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The bits that hold every number up to this one.
fn width(greatest: u32) -> u32 {
    u32::BITS - greatest.leading_zeros()
}

fn standing_code(node: &Node) -> u32 {
    match node.standing {
        Standing::Voting if node.floor > 0 => SEEDED,
        Standing::Voting => 0,
        Standing::Quarantined => QUARANTINED,
        Standing::Aged => AGED,
    }
}

fn reading_code(reading: Option<Reading>) -> u32 {
    reading.map_or(0, |Reading { voting, known }| {
        1 + 2 * u32::from(known) + u32::from(voting)
    })
}

fn reading_of(code: u8) -> Option<Reading> {
    code.checked_sub(1).map(|code| Reading {
        voting: code % 2 == 1,
        known: code / 2,
    })
}

/// The lowest bit tells these phases from [`Phase::Acquiring`].
fn phase_code(phase: Phase) -> u32 {
    let code = match phase {
        Phase::Idle | Phase::Acquiring => 0,
        Phase::WritingBack => 1,
        Phase::Done => 2,
        Phase::Failed => 3,
    };
    code << 1 | 1
}

fn phase_of(code: u32) -> Phase {
    match code {
        1 => Phase::WritingBack,
        2 => Phase::Done,
        3 => Phase::Failed,
        _ => Phase::Idle,
    }
}

fn vote_code(exchange: Exchange) -> u32 {
    match exchange {
        Exchange::Asked => 1,
        Exchange::Vote(counter) => 2 + u32::from(counter),
        Exchange::Over | Exchange::Writing | Exchange::Stored => 0,
    }
}

fn exchange_of_vote(code: u32) -> Exchange {
    match code {
        0 => Exchange::Over,
        1 => Exchange::Asked,
        code => Exchange::Vote((code - 2) as u8),
    }
}

fn other_code(exchange: Exchange) -> u32 {
    match exchange {
        Exchange::Over | Exchange::Vote(_) => 0,
        Exchange::Asked => 1,
        Exchange::Writing => 2,
        Exchange::Stored => 3,
    }
}

fn exchange_of_other(code: u32) -> Exchange {
    match code {
        1 => Exchange::Asked,
        2 => Exchange::Writing,
        3 => Exchange::Stored,
        _ => Exchange::Over,
    }
}

#[derive(Default)]
struct Writer {
    bits: u128,
    length: u32,
}

impl Writer {
    fn put(&mut self, value: u32, width: u32) {
        debug_assert!(u64::from(value) < 1 << width, "{value} in {width} bits");
        // A width of zero can come when all bits are taken; the value is zero then.
        self.bits |= u128::from(value).wrapping_shl(self.length);
        self.length += width;
    }
}

struct Reader(u128);

impl Reader {
    fn take(&mut self, width: u32) -> u32 {
        let value = self.0 & ((1 << width) - 1);
        self.0 = self.0.checked_shr(width).unwrap_or_default();
        value as u32
    }

    /// Takes one that is no wider than eight bits.
    fn take_number(&mut self, width: u32) -> u8 {
        self.take(width) as u8
    }
}
