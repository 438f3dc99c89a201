//! Two processes under load, while masters are replaced again and again, back and forth.
//!
//! `REDLOCK_FAILOVERS=20 cargo test -p redlock-tests --test it -- failovers::back --nocapture` replaces at least 20 masters
//! of each form, in ten minutes.

use std::{collections::BTreeMap, env, time::Duration};

use redlock_core::{NodeAnswer, NotAVote, Redlock};
use redlock_tests::{
    ClientProcess, Connect, History, Load, LoadSummary, Work, eventually, now, voting,
};
use tokio::time::sleep;

use super::{FOLLOWED, POLL, cluster_form::ClusterForm, sentinel_form::SentinelForm};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const MAX_TTL: Duration = Duration::from_secs(2);
/// The number of masters that are replaced in each form, if the environment does not say it.
const FAILOVERS: usize = 2;

/// How a master is replaced.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Way {
    /// It hangs, and wakes later.
    Freeze,
    /// An operator has it replaced.
    Planned,
    /// All that name it lose it, and its replica does; clients do not.
    Cut,
    /// It is killed, and starts again later.
    Kill,
}

/// Each way is followed by each of the others, and by itself, within three rounds.
const WAYS: [Way; 12] = [
    Way::Freeze,
    Way::Planned,
    Way::Cut,
    Way::Freeze,
    Way::Kill,
    Way::Cut,
    Way::Planned,
    Way::Planned,
    Way::Freeze,
    Way::Freeze,
    Way::Cut,
    Way::Kill,
];

/// Nodes whose servers others name.
pub(super) trait Form {
    /// The name of the form, for the figures.
    fn name(&self) -> &'static str;

    /// The nodes' URLs.
    fn urls(&self) -> Vec<String>;

    /// The number of votes.
    fn votes(&self) -> usize;

    /// The number of masters that can be replaced at once in this way.
    fn at_once(&self, way: Way) -> usize;

    /// Takes the master of a vote away.
    async fn replace(&mut self, vote: usize, way: Way);

    /// Waits until the others name a server in its place.
    async fn is_replaced(&self, vote: usize);

    /// Has the server that was taken away come back, and does not wait for it.
    fn bring_back(&mut self, vote: usize);

    /// Waits until the server that came back can be the master again.
    async fn can_be_promoted(&self, vote: usize);

    /// Has one of those that name the servers lose its file, if that can be.
    async fn lose_file(&mut self);

    /// The locks on all servers, old masters and replicas among them.
    fn keys(&self) -> Vec<String>;
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_master_behind_sentinels_is_replaced_back_and_forth() {
    println!("{}", under_load(SentinelForm::start(1)).await);
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_masters_behind_sentinels_are_replaced_back_and_forth() {
    println!("{}", under_load(SentinelForm::start(3)).await);
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owners_of_three_votes_of_a_cluster_are_replaced_back_and_forth() {
    println!("{}", under_load(ClusterForm::start(3).await).await);
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_the_one_vote_of_a_cluster_is_replaced_back_and_forth() {
    println!("{}", under_load(ClusterForm::start(1).await).await);
}

/// Replaces masters while two processes work on; returns the figures.
async fn under_load(mut form: impl Form) -> String {
    let wanted = env::var("REDLOCK_FAILOVERS").map_or(FAILOVERS, |count| count.parse().unwrap());
    let history = History::new();
    let connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(form.urls(), MAX_TTL)
    };
    let watch = connect.client().await;
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: connect.clone(),
            tasks: 16,
            keys: 24,
            slots: 0,
            shared_percent: 0,
            acquisitions: 0,
            at_least: UNTIL_ASKED,
            at_most: UNTIL_ASKED,
            wait: Duration::from_secs(10),
            // The leases of some outlast a failover.
            hold: 2 * MAX_TTL,
            rest: Duration::from_millis(50),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    let holds = || history.holds().len();
    eventually("leases are held", FOLLOWED, holds, |holds| *holds > 20).await;
    let (mut counts, mut replaced, mut first_vote) = (BTreeMap::new(), 0, 0);
    let mut unnoticed = Vec::new();
    for (step, way) in WAYS.iter().copied().cycle().enumerate() {
        // The second way leads back.
        if replaced >= wanted && step > 1 {
            break;
        }
        let count = if step % 2 == 0 { form.at_once(way) } else { 1 };
        let votes: Vec<usize> = (0..count)
            .map(|it| (first_vote + it) % form.votes())
            .collect();
        first_vote += usize::from(step % 2 == 1);
        let begun = now();
        for vote in &votes {
            form.bring_back(*vote);
            form.can_be_promoted(*vote).await;
        }
        let can_be_promoted = now();
        if step % 3 == 2 {
            // It wakes with requests that it has not sent yet, to servers that were replaced.
            clients[0].freeze();
        }
        for vote in &votes {
            form.replace(*vote, way).await;
        }
        for vote in &votes {
            form.is_replaced(*vote).await;
        }
        let is_replaced = now();
        if step / WAYS.len() % 2 == 1 {
            // The old servers are replicas again before they are named again.
            votes.iter().for_each(|vote| form.bring_back(*vote));
        }
        *counts.entry(way).or_insert(0) += count;
        replaced += count;
        if !are_quarantined(&watch, &votes).await {
            unnoticed.push(format!("{way:?} of {votes:?} after {replaced}"));
        }
        clients[0].thaw();
        voting(&watch, form.votes(), FOLLOWED).await;
        let votes_again = now();
        if step % 4 == 1 {
            form.lose_file().await;
        }
        let [ready, named, voted] = [
            can_be_promoted - begun,
            is_replaced - can_be_promoted,
            votes_again - is_replaced,
        ];
        eprintln!(
            "{}: {way:?} of {votes:?}: ready after {ready:?}, replaced after {named:?}, votes after {voted:?}",
            form.name()
        );
    }
    for vote in 0..form.votes() {
        form.bring_back(vote);
        form.can_be_promoted(vote).await;
    }
    voting(&watch, form.votes(), FOLLOWED).await;
    for client in &clients {
        client.terminate();
    }
    for client in clients {
        let summary: LoadSummary = client.finish(FOLLOWED).await;
        eprintln!("{summary:?}");
        assert!(summary.cancelled > 0, "some are dropped");
    }
    let holds = history.assert_exclusive();
    eventually(
        "no server has a key",
        FOLLOWED,
        || form.keys(),
        Vec::is_empty,
    )
    .await;
    assert!(unnoticed.is_empty(), "no quarantine after {unnoticed:?}");
    format!(
        "{}: {replaced} failovers {counts:?}, holds: {}, overlaps: 0, disorder of tokens: 0, keys left: 0",
        form.name(),
        holds.len()
    )
}

/// Waits until the client has seen each of these nodes in quarantine; returns whether it has within a few seconds.
async fn are_quarantined(watch: &Redlock, nodes: &[usize]) -> bool {
    let (until, mut left) = (now() + NOTICED, nodes.to_vec());
    while !left.is_empty() && now() < until {
        let reports = watch.node_reports().await;
        left.retain(|node| {
            let answer = &reports[*node].answer;
            let NodeAnswer::NotAVote { reason } = answer else {
                return true;
            };
            !matches!(reason, NotAVote::Quarantined { .. })
        });
        sleep(POLL).await;
    }
    left.is_empty()
}

/// Longer than a client needs to learn of another server, and shorter than its quarantine.
const NOTICED: Duration = Duration::from_secs(6);
/// No run takes so long.
const UNTIL_ASKED: Duration = Duration::from_secs(24 * 60 * 60);
