//! What nodes do with what was sent to them, and what becomes of their connections and clocks.

use super::*;

impl Bench {
    pub(crate) fn run(&mut self, node: usize, requests: &[Request]) -> Vec<Reply> {
        let time = self.time(node);
        let answer = self.nodes[node].call(&self.keyspace, requests, time);
        let replies = answer.replies.into_iter();
        replies
            .map(|reply| reply.expect("it is in range"))
            .collect()
    }

    /// Lets a node run and answer what a client has sent it.
    pub(crate) fn answer(&mut self, peer: usize, node: usize) {
        self.answer_times(peer, node, 1);
    }

    /// Lets a node run what a client has sent it; the client hears the answer this many times.
    pub(crate) fn answer_times(&mut self, peer: usize, node: usize, times: usize) {
        let sent = self.peers[peer].sent.extract_if(.., |(to, ..)| *to == node);
        let (rounds, requests): (Vec<u64>, Vec<Request>) =
            sent.map(|(_, round, request)| (round, request)).unzip();
        let (at, now) = (self.at[node], self.now());
        let time = self.time(at);
        let answer = self.nodes[at].call(&self.keyspace, &requests, time);
        let replies = answer
            .replies
            .into_iter()
            .map(|reply| reply.map_err(RequestError::not_executed));
        let results: Vec<_> = rounds.into_iter().zip(replies).collect();
        for _ in 0..times {
            let (standing, results) = (answer.standing.clone(), results.clone());
            let client = &mut self.peers[peer].client;
            client.on_answer(node, standing, results, now.clock, now);
        }
        self.gather(peer);
    }

    /// Returns whether a client has sent something that a node has not answered.
    pub(crate) fn has_sent(&self, peer: usize, node: usize) -> bool {
        self.peers[peer].sent.iter().any(|(to, ..)| *to == node)
    }

    /// Returns whether a client has asked a node to keep a key for longer, and the node has not answered.
    pub(crate) fn has_asked_to_extend(&self, peer: usize, node: usize) -> bool {
        let extends = |request: &Request| {
            let Request::Lock { verb, .. } = request else {
                return false;
            };
            matches!(verb, Verb::Extend { .. })
        };
        let mut sent = self.peers[peer].sent.iter();
        sent.any(|(to, _, request)| *to == node && extends(request))
    }

    /// Lets a node have counted an hour further than the others.
    pub(crate) fn count_ahead(&mut self, node: usize) {
        self.take(node, self.now().wall + HOUR);
        self.free(0, node);
    }

    /// Has a stranger take the key at a node.
    pub(crate) fn take(&mut self, node: usize, proposal: u64) {
        let verb = Verb::Acquire {
            ttl: 2 * TTL,
            proposal,
            block: 1,
            wish: None,
            line: None,
        };
        self.run(node, &[of_a_stranger(verb)]);
    }

    /// Has the stranger let the key go at a node, which may give it to the next in line; a client hears of it.
    pub(crate) fn free(&mut self, peer: usize, node: usize) {
        self.run(node, &[of_a_stranger(Verb::Release { ttl: TTL })]);
        let now = self.now();
        for (_, gift) in self.nodes[node].take_messages() {
            self.peers[peer].client.on_gift(node, gift, now);
        }
        self.gather(peer);
    }

    /// Lets a client hear what each node publishes for it.
    pub(crate) fn listen(&mut self, peer: usize) {
        let now = self.now();
        for node in 0..self.nodes.len() {
            self.peers[peer].client.on_listening(node, true, now);
        }
    }

    /// Lets a node answer the first request that it was sent.
    pub(crate) fn answer_once(&mut self, peer: usize, node: usize) {
        let sent = &mut self.peers[peer].sent;
        let first = sent.iter().position(|(to, ..)| *to == node);
        let first = sent.remove(first.expect("something was sent"));
        let rest = std::mem::replace(sent, vec![first]);
        self.answer(peer, node);
        self.peers[peer].sent.splice(..0, rest);
    }

    /// Lets every node answer what it was sent so far.
    pub(crate) fn answer_all_once(&mut self, peer: usize) {
        let batch = self.sent(peer);
        let mut later = Vec::new();
        for node in 0..self.nodes.len() {
            let of_node = batch.iter().filter(|(to, ..)| *to == node).cloned();
            self.peers[peer].sent = of_node.collect();
            self.answer(peer, node);
            later.append(&mut self.peers[peer].sent);
        }
        self.peers[peer].sent = later;
    }

    /// Lets every node answer, until there is nothing left to answer.
    pub(crate) fn answer_all(&mut self, peer: usize) {
        while let Some((node, ..)) = self.peers[peer].sent.first() {
            let node = *node;
            self.answer(peer, node);
        }
    }

    /// Runs the requests of a client on the nodes, and loses the answers.
    pub(crate) fn run_unheard(&mut self, peer: usize) {
        for (node, _, request) in self.sent(peer) {
            self.run(node, &[request]);
        }
    }

    /// Lets enough time pass for a round to come to its limit.
    pub(crate) fn time_out(&mut self, peer: usize) {
        self.pass(LIMIT.as_millis() as u64);
        let now = self.now();
        self.peers[peer].client.on_timer(now);
        self.gather(peer);
    }

    /// Lets a node's quarantine pass.
    pub(crate) fn sit_out(&mut self, node: usize) {
        self.sit_out_but(node, |_| false);
    }

    /// Lets a node's quarantine pass; returns the requests that are `lost` and do not arrive.
    pub(crate) fn sit_out_but(&mut self, node: usize, lost: fn(&Sent) -> bool) -> Vec<Sent> {
        let quarantine = *self.keyspace.quarantine();
        let step = quarantine.step().as_millis() as u64 / 2;
        let mut kept = Vec::new();
        for _ in 0..quarantine.length().as_millis() as u64 / step + 3 {
            self.run(node, &[]);
            self.pass(step);
            for peer in 0..2 {
                self.answer(peer, node);
                let now = self.now();
                self.peers[peer].client.on_timer(now);
                self.gather(peer);
                loop {
                    let sent = &mut self.peers[peer].sent;
                    kept.extend(sent.extract_if(.., |sent| lost(sent)));
                    let Some((node, ..)) = sent.first() else {
                        break;
                    };
                    let node = *node;
                    self.answer(peer, node);
                }
            }
        }
        kept
    }

    /// Sets a node's clock to `ahead` milliseconds after the right time, or before it if negative.
    pub(crate) fn set_clock(&mut self, node: usize, ahead: i64) {
        self.ahead[node] = ahead;
    }

    /// Ends the oldest request to a node with an error; the connection goes on.
    pub(crate) fn fail(&mut self, peer: usize, node: usize, error: RequestError) {
        let now = self.now();
        let Peer { client, sent, .. } = &mut self.peers[peer];
        let oldest = sent.iter().position(|(to, ..)| *to == node);
        let (_, round, _) = sent.remove(oldest.expect("something was sent"));
        client.on_answer(node, None, [(round, Err(error))], now.clock, now);
        self.gather(peer);
    }

    /// Breaks a client's connection to a node, with all that was sent over it and not answered.
    pub(crate) fn cut(&mut self, peer: usize, node: usize) {
        let now = self.now();
        let sent = self.peers[peer].sent.extract_if(.., |(to, ..)| *to == node);
        let failed: Vec<_> = sent
            .map(|(_, round, _)| (round, Err(RequestError::unknown("cut".into()))))
            .collect();
        let Peer { client, down, .. } = &mut self.peers[peer];
        down[node] = true;
        client.on_disconnected(node, "cut".into(), now);
        client.on_answer(node, None, failed, now.clock, now);
        self.gather(peer);
    }

    /// Lets a client hear that the outcome of a request to a node is unknown.
    pub(crate) fn lose(&mut self, peer: usize, node: usize, round: u64) {
        let (now, error) = (self.now(), RequestError::unknown("cut".into()));
        let client = &mut self.peers[peer].client;
        client.on_answer(node, None, [(round, Err(error))], now.clock, now);
        self.gather(peer);
    }

    /// Lets another node answer at an address from now on, over connections that stand.
    pub(crate) fn reroute(&mut self, address: usize, node: usize) {
        self.at[address] = node;
    }

    /// Connects a client to a node again, and the node does not say what it is.
    pub(crate) fn reconnect_unexamined(&mut self, peer: usize, node: usize) {
        let (time, now) = (self.time(node), self.now());
        let answer = self.nodes[node].call(&self.keyspace, &[], time);
        let client = &mut self.peers[peer].client;
        client.on_disconnected(node, "cut".into(), now);
        client.on_connected(node, answer, now.clock, now);
        self.gather(peer);
    }

    /// Returns since how many milliseconds after the beginning a node remembers ticks, if it forgot.
    pub(crate) fn horizon(&self, node: usize) -> Option<u64> {
        let since = self.nodes[node].horizon(&self.keyspace)?;
        Some(since.as_millis().saturating_sub(NOON))
    }

    /// Returns how many milliseconds after the beginning each node's watermark is.
    pub(crate) fn watermarks(&self) -> Vec<Option<u64>> {
        let watermark = |node: &Store| {
            let last = node.runs(&Self::job()).first().map(|run| run.tick);
            last.map(|tick| tick.as_millis() - NOON)
        };
        self.nodes.iter().map(watermark).collect()
    }

    /// Returns how many locks each node has.
    pub(crate) fn locks(&self) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .map(|(node, store)| store.locks(self.time(node)))
            .collect()
    }
}

/// In microseconds; longer than any of these stories takes, so that the clock does not stand in for counters.
const HOUR: u64 = 3_600_000_000;

fn of_a_stranger(verb: Verb) -> Request {
    let lock = Lock {
        mode: LockMode::Exclusive,
        keys: Bench::lock().into(),
        owner: OwnerId::from_random([9; 16]),
    };
    Request::Lock {
        verb,
        lock: lock.into(),
    }
}
