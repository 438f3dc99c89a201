//! A world of named servers as one number.
//!
//! All that is true of one informant is a column: its own state, whether its id is on each roll, and what each inquiry has
//! heard of it.
//! Columns are sorted, because it does not matter which informant is which.

use super::{
    NamedCheck, NamedRules,
    state::{
        CLIENTS, Client, Failover, INFORMANTS, Ids, Inquiry, Mark, MarkKind, Pair, Request,
        SERVERS, Server, Session, State,
    },
};

/// How a state becomes a number, and a number a state.
#[derive(Debug)]
pub(super) struct Layout {
    informants: usize,
    /// How many epochs there are, from 0.
    epochs: u64,
    ttl: u64,
    freshness: u64,
    quarantine: u64,
    lost: u64,
    replaced: u64,
    restarts: u64,
    has_false_pair: bool,
    has_late_promotions: bool,
    has_resets: bool,
    has_rolls: bool,
    has_requests: bool,
    has_inquiries: bool,
    has_former: bool,
    are_clients_alike: bool,
    /// The bits of a column.
    column: u32,
    /// The bits of all that is not in columns.
    rest: u32,
}

impl Layout {
    pub(super) fn new(check: &NamedCheck) -> Self {
        let world = check.world;
        let mut layout = Self {
            informants: world.informants,
            epochs: u64::from(world.failovers) + 1,
            ttl: world.ttl.into(),
            freshness: world.freshness.into(),
            quarantine: (world.ttl + world.freshness).into(),
            lost: world.lost.into(),
            replaced: world.replaced.into(),
            restarts: world.restarts.into(),
            has_false_pair: world.has_false_pair,
            has_late_promotions: world.has_late_promotions,
            has_resets: world.resets > 0,
            has_rolls: check.rules == NamedRules::Term,
            has_requests: world.has_late_requests,
            has_inquiries: world.has_slow_answers,
            has_former: world.has_slow_answers && world.lost + world.replaced > 0,
            are_clients_alike: check.are_clients_alike(),
            column: 0,
            rest: 0,
        };
        let mut state = State::default();
        let mut radix = Radix::default();
        layout.visit_column(&mut radix, &mut state, 0);
        layout.column = radix.bits();
        let mut radix = Radix::default();
        layout.visit_rest(&mut radix, &mut state);
        layout.rest = radix.bits();
        layout
    }

    /// Returns the bits that a state takes.
    pub(super) fn bits(&self) -> u32 {
        let columns = u32::try_from(self.informants).unwrap_or(u32::MAX);
        self.rest + columns * self.column
    }

    /// Returns a number that no other world has, but for those that differ only in which informant or client is which.
    pub(super) fn number(&self, state: &State) -> u128 {
        let swapped = || self.number_in_order(&swapped(state));
        if !self.are_clients_alike {
            return self.number_in_order(state);
        }
        let [x, y] = [0, 1].map(|by| client_rank(&state.clients[by]));
        match x.cmp(&y) {
            std::cmp::Ordering::Less => self.number_in_order(state),
            std::cmp::Ordering::Greater => swapped(),
            std::cmp::Ordering::Equal => self.number_in_order(state).min(swapped()),
        }
    }

    fn number_in_order(&self, state: &State) -> u128 {
        let mut state = *state;
        let mut columns = [0; INFORMANTS];
        for (place, column) in columns[..self.informants].iter_mut().enumerate() {
            let mut digits = Writer::default();
            self.visit_column(&mut digits, &mut state, place);
            *column = digits.number;
        }
        let columns = &mut columns[..self.informants];
        columns.sort_unstable();
        let mut digits = Writer::default();
        self.visit_rest(&mut digits, &mut state);
        let mut number = u128::from(digits.number);
        let mut shift = self.rest;
        for column in columns {
            number |= u128::from(*column).wrapping_shl(shift);
            shift += self.column;
        }
        number
    }

    /// Returns the world of such a number.
    pub(super) fn state(&self, number: u128) -> State {
        let mut state = State::default();
        for server in &mut state.servers {
            server.mark = Mark::default();
        }
        let mask = |bits: u32| (1_u128 << bits) - 1;
        let part = |shift: u32, bits| {
            let shifted = number.checked_shr(shift).unwrap_or_default();
            u64::try_from(shifted & mask(bits)).unwrap_or_default()
        };
        // What the columns say of sessions, requests and inquiries is written into those that there are.
        self.visit_rest(&mut Reader(part(0, self.rest)), &mut state);
        let mut shift = self.rest;
        for place in 0..self.informants {
            self.visit_column(&mut Reader(part(shift, self.column)), &mut state, place);
            shift += self.column;
        }
        state
    }

    /// Writes or reads what is true of one informant.
    fn visit_column(&self, digits: &mut impl Digits, state: &mut State, place: usize) {
        let informant = &mut state.informants[place];
        digits.digit(&mut informant.server, 2);
        digits.digit(&mut informant.epoch, self.epochs);
        digits.digit(&mut informant.seen, self.epochs);
        let mut failover = match informant.failover {
            Failover::None => 0,
            Failover::Promoted => 1,
            Failover::Elected(epoch) => 1 + epoch,
        };
        digits.digit(&mut failover, self.failovers());
        informant.failover = match failover {
            0 => Failover::None,
            1 => Failover::Promoted,
            epoch => Failover::Elected(epoch - 1),
        };
        digits.flag(&mut informant.was_reset, self.has_resets);
        if self.has_rolls {
            for server in &mut state.servers {
                self.visit_ids(digits, &mut server.mark.roll, place);
            }
            for client in &mut state.clients {
                let mut none = Ids::default();
                let roll = client.session.as_mut().map(|it| &mut it.roll);
                self.visit_ids(digits, roll.unwrap_or(&mut none), place);
                if self.has_requests {
                    let roll = client.request.as_mut().map(|it| &mut it.roll);
                    self.visit_ids(digits, roll.unwrap_or(&mut none), place);
                }
            }
        }
        if self.has_inquiries {
            let mut none = Inquiry::default();
            let answers = &mut state.inquiry.as_mut().unwrap_or(&mut none).answers;
            digits.digit(&mut answers.named[place], 2 * self.epochs + 1);
            digits.bit(&mut answers.former, place, self.has_former);
            digits.bit(&mut answers.young, place, self.has_former);
        }
    }

    fn visit_ids(&self, digits: &mut impl Digits, ids: &mut Ids, place: usize) {
        digits.bit(&mut ids.present, place, true);
        digits.bit(&mut ids.former, place, self.has_former);
    }

    /// Returns in how many ways an informant can be with its failover.
    const fn failovers(&self) -> u64 {
        if self.has_late_promotions {
            self.epochs + 1
        } else if self.has_false_pair {
            2
        } else {
            1
        }
    }

    /// Writes or reads all that is true of no single informant.
    fn visit_rest(&self, digits: &mut impl Digits, state: &mut State) {
        for server in &mut state.servers {
            self.visit_server(digits, server);
        }
        for client in &mut state.clients {
            self.visit_client(digits, client);
        }
        if self.has_inquiries {
            self.visit_inquiry(digits, &mut state.inquiry);
        }
        digits.digit(&mut state.lost, self.lost + 1);
        digits.digit(&mut state.replaced, self.replaced + 1);
        digits.digit(&mut state.restarts, self.restarts + 1);
    }

    fn visit_server(&self, digits: &mut impl Digits, server: &mut Server) {
        digits.flag(&mut server.is_master, true);
        let mark = &mut server.mark;
        // A quarantine has an age, and nothing else has.
        let mut kind = match mark.kind {
            MarkKind::None => 0,
            MarkKind::Foreign => 1,
            MarkKind::Voting => 2,
            MarkKind::Quarantined => 3 + mark.age,
        };
        digits.digit(&mut kind, 4 + self.quarantine);
        (mark.kind, mark.age) = match kind {
            0 => (MarkKind::None, 0),
            1 => (MarkKind::Foreign, 0),
            2 => (MarkKind::Voting, 0),
            kind => (MarkKind::Quarantined, kind - 3),
        };
        digits.digit(&mut mark.epoch, self.epochs);
        // A key has a time to live, and nothing else has.
        let mut key = server.key.map_or(0, |by| 1 + by + 2 * (server.ttl - 1));
        digits.digit(&mut key, 1 + 2 * self.ttl);
        (server.key, server.ttl) = match key.checked_sub(1) {
            None => (None, 0),
            Some(key) => (Some(key % 2), 1 + key / 2),
        };
    }

    fn visit_client(&self, digits: &mut impl Digits, client: &mut Client) {
        digits.digit(&mut client.lease, self.ttl + 1);
        let pairs = 2 * self.epochs + 1;
        let session = client.session.unwrap_or_default();
        let (mut pair, mut age) = (client.session.map_or(0, |it| it.pair.code()), session.age);
        digits.digit(&mut pair, pairs);
        digits.digit(&mut age, self.freshness + 2);
        let roll = session.roll;
        client.session = Pair::of(pair).map(|pair| Session { pair, roll, age });
        if self.has_requests {
            let request = client.request.unwrap_or_default();
            let (mut pair, mut age) = (client.request.map_or(0, |it| it.pair.code()), request.age);
            digits.digit(&mut pair, pairs);
            digits.digit(&mut age, self.ttl + 1);
            let roll = request.roll;
            client.request = Pair::of(pair).map(|pair| Request { pair, roll, age });
        }
    }

    /// Writes or reads which client asks, if one does, and since when; its answers are in the columns.
    fn visit_inquiry(&self, digits: &mut impl Digits, inquiry: &mut Option<Inquiry>) {
        let mut known = inquiry.unwrap_or_default();
        let mut code = inquiry.map_or(0, |it| 1 + it.by + 2 * it.age);
        digits.digit(&mut code, 1 + 2 * (self.freshness + 1));
        digits.flag(&mut known.is_steady, true);
        *inquiry = code.checked_sub(1).map(|code| {
            (known.by, known.age) = (code % 2, code / 2);
            known
        });
    }
}

/// Returns the same world with the clients in the other order.
fn swapped(state: &State) -> State {
    let mut swapped = *state;
    swapped.clients.swap(0, 1);
    if let Some(inquiry) = &mut swapped.inquiry {
        inquiry.by = super::state::other(inquiry.by);
    }
    for server in &mut swapped.servers {
        server.key = server.key.map(super::state::other);
    }
    swapped
}

/// Returns what decides mostly which of two clients is the first.
fn client_rank(client: &Client) -> u64 {
    let pair = client.session.map_or(0, |it| it.pair.code());
    let age = client.session.map_or(0, |it| it.age);
    let request = client.request.map_or(0, |it| it.pair.code());
    u64::from_le_bytes([client.lease, pair, age, request, 0, 0, 0, 0])
}

/// The digits of a number, the least first, each with a base of its own.
trait Digits {
    /// Writes the value, or reads it.
    fn digit(&mut self, value: &mut u8, base: u64);

    /// Does the same with a flag that a world may not have.
    fn flag(&mut self, value: &mut bool, is_there: bool) {
        if is_there {
            let mut digit = u8::from(*value);
            self.digit(&mut digit, 2);
            *value = digit == 1;
        }
    }

    /// Does the same with a bit of a set.
    fn bit(&mut self, set: &mut u8, place: usize, is_there: bool) {
        if is_there {
            let mut bit = *set >> place & 1;
            self.digit(&mut bit, 2);
            *set = *set & !(1 << place) | bit << place;
        }
    }
}

struct Writer {
    number: u64,
    scale: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            number: 0,
            scale: 1,
        }
    }
}

impl Digits for Writer {
    fn digit(&mut self, value: &mut u8, base: u64) {
        debug_assert!(u64::from(*value) < base, "{value} is no digit of {base}");
        self.number += u64::from(*value) * self.scale;
        // The last digit may leave a scale that is too large for its type, and that no digit has.
        self.scale = self.scale.wrapping_mul(base);
    }
}

struct Reader(u64);

impl Digits for Reader {
    fn digit(&mut self, value: &mut u8, base: u64) {
        *value = u8::try_from(self.0 % base).unwrap_or_default();
        self.0 /= base;
    }
}

/// How many numbers there are.
struct Radix(u128);

impl Default for Radix {
    fn default() -> Self {
        Self(1)
    }
}

impl Radix {
    const fn bits(&self) -> u32 {
        u128::BITS - (self.0 - 1).leading_zeros()
    }
}

impl Digits for Radix {
    fn digit(&mut self, _: &mut u8, base: u64) {
        self.0 = self.0.saturating_mul(base.into());
    }
}

const _: () = assert!(CLIENTS == 2 && SERVERS == 2, "both are coded as bits");

#[cfg(test)]
mod tests {
    use super::{
        super::{
            NamedWorld,
            state::{Answers, Informant},
        },
        *,
    };

    /// A world that has one of everything.
    fn full() -> State {
        let ids = |present, former| Ids { present, former };
        let pair = |server, epoch| Pair { server, epoch };
        let mut state = State::default();
        state.informants[0].failover = Failover::Elected(2);
        state.informants[1] = Informant {
            server: 1,
            epoch: 1,
            seen: 2,
            failover: Failover::Promoted,
            was_reset: false,
        };
        state.servers[0].mark.roll = ids(0b101, 0);
        state.servers[1] = Server {
            is_master: true,
            mark: Mark {
                kind: MarkKind::Quarantined,
                epoch: 2,
                roll: ids(0b011, 0b100),
                age: 2,
            },
            key: Some(1),
            ttl: 1,
        };
        state.clients[0] = Client {
            session: Some(Session {
                pair: pair(1, 2),
                roll: ids(0b110, 0b100),
                age: 2,
            }),
            lease: 1,
            request: None,
        };
        state.clients[1].request = Some(Request {
            pair: pair(0, 1),
            roll: ids(0b001, 0b100),
            age: 1,
        });
        state.inquiry = Some(Inquiry {
            answers: Answers {
                named: [0, pair(0, 0).code(), pair(1, 2).code(), 0, 0],
                former: 0b100,
                young: 0b010,
            },
            age: 1,
            ..Inquiry::of(1)
        });
        state.lost = 1;
        state
    }

    fn layout() -> Layout {
        let world = NamedWorld::of(2).lost(1).late_promotions().late_requests();
        let check = NamedCheck::new(NamedRules::Term, world.slow_answers());
        Layout::new(&check.expect("the world is small"))
    }

    #[test]
    fn a_world_has_one_number_whichever_client_and_informant_is_which() {
        let layout = layout();
        let number = layout.number(&full());
        assert_eq!(layout.number(&swapped(&full())), number);
        assert_eq!(layout.number(&layout.state(number)), number);
        let mut turned = full();
        turned.informants[..3].rotate_left(1);
        assert_ne!(layout.number(&turned), number, "rolls are as before");
    }

    #[test]
    fn nothing_of_a_world_is_left_out_of_its_number() {
        let layout = layout();
        let state = layout.state(layout.number(&full()));
        let names = |state: &State| {
            let mut names: Vec<_> = state.informants[..3].iter().map(Informant::tells).collect();
            names.sort_by_key(|pair| pair.code());
            names
        };
        assert_eq!(names(&state), names(&full()));
        let [a, b] = state.servers;
        assert_eq!(
            (a.mark.kind, a.mark.roll.present.count_ones()),
            (MarkKind::Voting, 2)
        );
        assert_eq!(
            (b.mark.kind, b.mark.age, b.mark.epoch),
            (MarkKind::Quarantined, 2, 2)
        );
        assert!(b.key.is_some() && b.ttl == 1 && state.lost == 1);
        let inquiry = state.inquiry.unwrap();
        assert_eq!(inquiry.answers.former.count_ones(), 1);
        assert_eq!(inquiry.answers.young.count_ones(), 1);
        let former = inquiry.answers.former;
        assert_eq!(b.mark.roll.former, former, "it is the same informant");
        let asks = state.clients[usize::from(inquiry.by)];
        assert!(
            asks.request
                .is_some_and(|it| it.roll.former == former && it.age == 1)
        );
        let session = state.clients[usize::from(1 - inquiry.by)].session;
        assert!(session.is_some_and(|it| it.age == 2 && it.roll.present.count_ones() == 2));
    }
}
