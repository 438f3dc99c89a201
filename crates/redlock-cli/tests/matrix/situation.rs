//! The situations in which a service asks for a lease, and what must happen in each.

use std::{path::Path, time::Duration};

use futures_util::future::join_all;
use libtest_mimic::Failed;
use redlock_tests::{Connect, Nodes, Proxies, WatchedNodes, now, voting};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    attempt::{Attempt, Running},
    journal::{Journal, Stint},
    surface::Surface,
};

/// A situation: in all but the first, another process has the lease first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Situation {
    Free,
    AfterAWait,
    BehindADeadCandidate,
    NodeKilled,
    NodeFrozen,
    Failover,
    Quarantine,
    SlowNetwork,
    SlowMachine,
}

/// The servers of a situation.
enum Servers {
    Plain(Nodes),
    /// Behind a network that takes its time.
    Far(
        Proxies,
        #[expect(dead_code, reason = "they run as long as it lives")] Nodes,
    ),
    Watched(WatchedNodes),
}

/// A surface in a situation.
struct Cell {
    surface: Surface,
    journal: Journal,
    connect: Connect,
}

impl Situation {
    pub(crate) const ALL: [Self; 9] = [
        // Those that take the longest first.
        Self::Failover,
        Self::Quarantine,
        Self::BehindADeadCandidate,
        Self::Free,
        Self::AfterAWait,
        Self::NodeKilled,
        Self::NodeFrozen,
        Self::SlowNetwork,
        Self::SlowMachine,
    ];

    /// Says what must happen.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Free => "a_free_lease_is_had_at_once",
            Self::AfterAWait => "after_a_wait_in_line_the_work_begins_and_ends_by_itself",
            Self::BehindADeadCandidate => "a_process_that_died_in_line_is_passed_over",
            Self::NodeKilled => "a_node_that_is_killed_meanwhile_keeps_no_process_in_line",
            Self::NodeFrozen => "a_node_that_is_frozen_meanwhile_keeps_no_process_in_line",
            Self::Failover => "a_failover_meanwhile_keeps_no_process_in_line_and_its_server_votes",
            Self::Quarantine => "two_nodes_that_forget_meanwhile_are_waited_for",
            Self::SlowNetwork => "a_network_of_ten_milliseconds_each_way_changes_nothing",
            Self::SlowMachine => "a_process_with_a_fifth_of_its_time_works_once",
        }
    }

    /// Tries all surfaces, side by side on the same servers.
    pub(crate) fn try_all(self) -> Result<(), Failed> {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(self.live_through())
    }

    async fn live_through(self) -> Result<(), Failed> {
        let mut servers = self.servers().await;
        let connect = Connect {
            max_ttl: self.ttl(),
            ..Connect::to(servers.urls(), self.ttl())
        };
        connect.client().await.close().await;
        let folder = TempDir::with_prefix("redlock-matrix-")?;
        let cell = |surface: &Surface| Cell::new(*surface, folder.path(), &connect);
        let cells: Vec<_> = Surface::ALL.iter().map(cell).collect();

        let mut before = Vec::new();
        if self != Self::Free {
            for cell in &cells {
                cell.journal.hold_up(FIRST);
                before.push(cell.start(FIRST));
            }
            join_all(cells.iter().map(|cell| cell.begun(FIRST))).await;
        }
        if self == Self::BehindADeadCandidate {
            let candidates: Vec<_> = cells.iter().map(|cell| cell.start(DEAD)).collect();
            sleep(IN_LINE).await;
            candidates.into_iter().for_each(Running::kill);
        }
        let waiting: Vec<_> = cells.iter().map(|cell| cell.start(SECOND)).collect();
        let slow = waiting.iter().filter(|_| self == Self::SlowMachine);
        let slow: Vec<_> = slow.map(Running::slow_down).collect();
        if self != Self::Free {
            sleep(IN_LINE).await;
        }
        let port = servers.disturb(self);
        let disturbed = now();
        if self != Self::Free {
            for cell in &cells {
                cell.journal.release(FIRST);
            }
        }
        let mut wrong = Vec::new();
        let ends = before.into_iter().chain(waiting);
        let ends = ends.map(|running| running.finish(self.within() + SLACK));
        for ended in join_all(ends).await {
            wrong.extend(ended.err());
        }
        slow.iter().for_each(tokio::task::JoinHandle::abort);
        if let (Servers::Watched(nodes), Some(port)) = (&mut servers, port) {
            second_failure(nodes, port, &connect).await;
        }
        let last: Vec<_> = cells.iter().map(|cell| cell.start(THIRD)).collect();
        let since: Vec<_> = last.iter().map(|running| running.since).collect();
        for ended in join_all(last.into_iter().map(|it| it.finish(SLACK))).await {
            wrong.extend(ended.err());
        }
        for (cell, since) in cells.iter().zip(since) {
            match self.judge(&cell.journal.stints(), disturbed, since) {
                Ok(said) => println!("{self:?}, {}: {said}", cell.surface),
                Err(why) => wrong.push(format!("{}: {why}", cell.surface)),
            }
        }
        match &*wrong {
            [] => Ok(()),
            _ => Err(wrong.join("\n").into()),
        }
    }

    /// Judges what one surface did; returns its times.
    fn judge(
        self,
        stints: &[Stint],
        disturbed: Duration,
        third: Duration,
    ) -> Result<String, String> {
        let workers: Vec<_> = stints.iter().map(|stint| &*stint.worker).collect();
        let expected: &[_] = match self {
            Self::Free => &[SECOND, THIRD],
            _ => &[FIRST, SECOND, THIRD],
        };
        if workers != expected || stints.iter().any(|stint| stint.to.is_none()) {
            return Err(format!("not each has worked once: {stints:#?}"));
        }
        let mut pairs = stints.iter().zip(&stints[1..]);
        if let Some((one, next)) = pairs.find(|(one, next)| one.to > Some(next.from)) {
            return Err(format!("two worked at once: {one:?}, {next:?}"));
        }
        let [.., second, last] = stints else {
            unreachable!("there are two")
        };
        let waited = second.from.saturating_sub(disturbed);
        if waited > self.within() {
            return Err(format!("the next began after {waited:?}"));
        }
        // Until then the nodes that forgot may not vote.
        if self == Self::Quarantine && waited < self.ttl() {
            return Err(format!(
                "the next began after {waited:?}, in the quarantine"
            ));
        }
        let at_once = last.from - third;
        if at_once > AT_ONCE {
            return Err(format!("the one after it began after {at_once:?}"));
        }
        Ok(format!(
            "the next after {waited:.1?}, the one after it in {at_once:.1?}"
        ))
    }

    /// Returns how soon the next process must begin when the one before it ends.
    ///
    /// No lease lapses in that time, unless it is one of a server that is gone.
    const fn within(self) -> Duration {
        match self {
            Self::Quarantine => Duration::from_secs(20),
            _ => AT_ONCE,
        }
    }

    const fn ttl(self) -> Duration {
        match self {
            // How long servers do not vote depends on it.
            Self::Failover | Self::Quarantine => Duration::from_secs(3),
            _ => Duration::from_secs(20),
        }
    }

    async fn servers(self) -> Servers {
        match self {
            Self::Failover => Servers::Watched(WatchedNodes::start(3)),
            Self::SlowNetwork => {
                let nodes = Nodes::start(3);
                let proxies = Proxies::start((0..3).map(|node| nodes[node].address())).await;
                for proxy in &proxies.0 {
                    proxy.delay_requests(Duration::from_millis(10));
                    proxy.delay_replies(Duration::from_millis(10));
                }
                Servers::Far(proxies, nodes)
            }
            _ => Servers::Plain(Nodes::start(3)),
        }
    }
}

impl Servers {
    fn urls(&self) -> Vec<String> {
        match self {
            Self::Plain(nodes) => nodes.urls(),
            Self::Far(proxies, _) => proxies.urls(),
            Self::Watched(nodes) => nodes.urls(),
        }
    }

    /// Has happen what happens while processes wait in line; returns the port of a master that was killed.
    fn disturb(&mut self, situation: Situation) -> Option<u16> {
        match (self, situation) {
            (Self::Plain(nodes), Situation::NodeKilled) => nodes.kill(0..1),
            (Self::Plain(nodes), Situation::NodeFrozen) => nodes.freeze(0..1),
            (Self::Plain(nodes), Situation::Quarantine) => {
                for node in 0..2 {
                    nodes[node].kill().expect("it runs");
                    nodes[node].restart().expect("it starts again");
                }
            }
            (Self::Watched(nodes), _) => {
                let port = nodes.masters[0].port();
                nodes.masters[0].kill().expect("it runs");
                return Some(port);
            }
            _ => {}
        }
        None
    }
}

/// Waits for the server in place of the master that was killed, and kills another: the new one's vote is needed then.
async fn second_failure(nodes: &mut WatchedNodes, port: u16, connect: &Connect) {
    nodes.succeeded(0, port).await;
    let client = connect.client().await;
    voting(&client, 3, Duration::from_secs(40)).await;
    client.close().await;
    nodes.masters[1].kill().expect("it runs");
}

impl Cell {
    fn new(surface: Surface, folder: &Path, connect: &Connect) -> Self {
        Self {
            surface,
            journal: Journal::at(folder.join(format!("{surface:?}"))),
            connect: connect.clone(),
        }
    }

    /// Starts a process that wants the lease.
    fn start(&self, worker: &str) -> Running {
        let attempt = Attempt {
            connect: self.connect.clone(),
            key: format!("{:?}", self.surface).to_lowercase(),
            journal: self.journal.clone(),
            worker: worker.to_owned(),
        };
        self.surface.start(&attempt)
    }

    /// Waits until a worker has begun.
    async fn begun(&self, worker: &str) {
        let limit = now() + SLACK;
        let has_begun = || self.journal.stints().iter().any(|it| it.worker == worker);
        while !has_begun() {
            assert!(now() < limit, "{}: {worker} has not begun", self.surface);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

const FIRST: &str = "first";
const DEAD: &str = "dead";
const SECOND: &str = "second";
const THIRD: &str = "third";
/// After this time, a process that was started is in line.
const IN_LINE: Duration = Duration::from_millis(1_500);
/// Half of the time that a lease lasts that is not released.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How long a process may take to start and to end on a busy machine.
const SLACK: Duration = Duration::from_secs(30);
