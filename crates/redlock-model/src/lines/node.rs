//! What nodes do, as `redlock-proto` decides it.

use std::time::Duration;

use redlock_proto::{
    InLine, LinePlace, LockMode, NodeTime, NodeVerb, OwnerId, Reply, Request, Store, Verb,
};

use super::{
    LineCheck,
    state::{Entry, Node, Owner, owners},
};
use crate::store::{self, Decided, FOREVER, KEY, NOON};

/// What a node is asked on behalf of a caller.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ask {
    pub(super) owner: Owner,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum What {
    /// To take the key, or to wait for it in line.
    Acquire,
    /// The same, for a holder that lacks the key of this node, with its token.
    Late(u8),
    /// To keep the key, and to store this token unless it is 0.
    Extend(u8),
    Release,
}

/// What a node did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) node: Node,
    /// The counter that came with a grant; 0 for anything else that it did as it was asked.
    pub(super) granted: Option<u8>,
    /// The owner in line that it has given the key to, and the counter that came with it.
    pub(super) gift: Option<(Owner, u8)>,
}

/// Nodes, and what they did whenever they were asked the same in the same state.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) check: LineCheck,
    decided: Decided<(Node, Ask), Done>,
}

impl Nodes {
    pub(super) fn new(check: LineCheck) -> Self {
        Self {
            check,
            decided: Decided::default(),
        }
    }

    /// Returns what a node does that is in this state.
    pub(super) fn ask(&self, node: Node, ask: Ask) -> Done {
        self.decided.ask((node, ask), || self.answer(node, ask))
    }

    /// Returns what `redlock-proto` has a node do.
    pub(super) fn decide(&self, node: Node, ask: Ask) -> Done {
        let mut store = self.store(&node);
        let owner = ask.owner;
        let verb = match ask.what {
            What::Acquire => acquire(0, in_line(owner, Entry::Waits)),
            What::Late(token) => acquire(token, in_line(owner, Entry::First)),
            What::Extend(token) => Verb::Extend {
                ttl: FOREVER,
                write_back: (token > 0).then_some(token.into()),
            },
            What::Release => Verb::Release { ttl: FOREVER },
        };
        if ask.what == What::Acquire {
            // Its client gives a sign of life ahead of it.
            self.sign(&mut store, owner, NOON);
        }
        let granted = match self.call(&mut store, lock(id(owner), verb), NOON) {
            Some(Reply::Taken { counter }) => Some(self.counter(counter)),
            Some(reply) if reply.is_done() => Some(0),
            _ => None,
        };
        // A node gives the one key at most once in a step.
        let mut messages = store.take_messages().into_iter();
        // A caller that is told that it is the first is given nothing.
        let given = messages.find(|(_, gift)| gift.counter > 0);
        let gift = given.and_then(|(client, gift)| {
            let owner = Owner::of(small(gift.round))?;
            (owner.by == small(client).into()).then_some((owner, self.counter(gift.counter)))
        });
        Done {
            node: Node {
                is_quarantined: node.is_quarantined,
                ..self.read(&mut store)
            },
            granted,
            gift,
        }
    }

    /// Returns a store that knows what the node knows.
    fn store(&self, node: &Node) -> Store {
        let run = "run".into();
        let mut store = if node.is_quarantined {
            Store::new(run)
        } else {
            Store::vouched_for(run)
        };
        let heal = |ttl| Verb::Heal {
            ttl,
            counter: node.counter.into(),
        };
        let before = store::owner(0xff);
        self.call(&mut store, lock(before, heal(SHORT)), EARLIER);
        for owner in owners() {
            let entry = node.entry(owner);
            if entry != Entry::None {
                let verb = acquire(0, in_line(owner, entry));
                self.sign(&mut store, owner, SIGNED);
                self.call(&mut store, lock(id(owner), verb), EARLIER);
            }
        }
        for owner in owners().filter(|owner| node.entry(*owner) == Entry::Waits) {
            self.sign(&mut store, owner, NOON);
        }
        if let Some(owner) = node.key {
            self.call(&mut store, lock(id(owner), heal(FOREVER)), NOON);
        }
        store
    }

    /// Returns what a store knows.
    fn read(&self, store: &mut Store) -> Node {
        let holder = store.holder(&KEY.into(), NOON);
        let mut node = Node {
            key: owners().find(|owner| holder == Some(id(*owner))),
            ..Node::default()
        };
        let line = store.line(&self.decided.keyspace, &KEY.into(), NOON);
        for text in line.as_deref().unwrap_or_default().lines() {
            let numbers: Vec<&str> = text.split(' ').collect();
            let [_, came, _, _, _, round, _] = numbers[..] else {
                continue;
            };
            let number = |text: &str| text.parse::<u64>().unwrap_or_default();
            if let Some(owner) = Owner::of(small(number(round))) {
                let client = owner.by as u64;
                let sign = store.sign_remaining(&self.decided.keyspace, client, NOON);
                *node.entry_mut(owner) = match (number(came), sign) {
                    (0, _) => Entry::First,
                    (_, Some(_)) => Entry::Waits,
                    (_, None) => Entry::Ended,
                };
            }
        }
        if let Some(Reply::Greatest(counter)) =
            self.call(store, Request::Node(NodeVerb::Survey), NOON)
        {
            node.counter = self.counter(counter);
        }
        node
    }

    /// Returns a counter, which is always 0 in a world without tokens.
    fn counter(&self, counter: u64) -> u8 {
        if self.check.has_tokens() {
            small(counter)
        } else {
            0
        }
    }

    fn sign(&self, store: &mut Store, owner: Owner, time: NodeTime) {
        let client = owner.by as u64;
        self.call(store, Request::Node(NodeVerb::Sign { client }), time);
    }

    fn call(&self, store: &mut Store, request: Request, time: NodeTime) -> Option<Reply> {
        self.decided.call(store, request, time)
    }
}

fn lock(owner: OwnerId, verb: Verb) -> Request {
    store::lock(owner, LockMode::Exclusive, verb)
}

fn acquire(proposal: u8, line: InLine) -> Verb {
    store::acquire(proposal, None, Some(line))
}

/// Returns the entry of an owner, whose round has the owner's number.
fn in_line(owner: Owner, entry: Entry) -> InLine {
    let client = owner.by as u64;
    let came = NodeTime::from_micros(client + 1);
    InLine {
        place: match entry {
            Entry::First => LinePlace::of_holder(client),
            _ => LinePlace { came, client },
        },
        round: owner.number().into(),
        grant: FOREVER,
        stay: FOREVER,
        at_once: false,
        signs: entry != Entry::First,
    }
}

fn id(owner: Owner) -> OwnerId {
    store::owner(owner.number())
}

fn small(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// What has ended at noon.
const SHORT: Duration = Duration::from_millis(1);
/// In the quarantine of a node that is in one at noon.
const EARLIER: NodeTime = NodeTime::from_micros(NOON.as_micros() - 10_000);
/// Signs of then are there still when callers enter the line, and are none at noon.
const SIGNED: NodeTime = NodeTime::from_micros(NOON.as_micros() - 3_005_000);
