//! Where the lock's nodes come from: the environment, servers on this machine, or memory.

use std::time::Duration;

use redlock_core::{MemoryNode, NodeAnswer, NodeConfig, NodeReport, NotAVote, Redlock};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tokio::time::{Instant, sleep};

use stage::{BoxError, Story};

/// The nodes of this run.
#[derive(Debug)]
pub(crate) enum Nodes {
    /// Servers that `REDLOCK_NODES` names.
    Given(Vec<NodeConfig>),
    /// Servers that this process started and may kill.
    Children(ServerSet),
    /// In this process.
    Memory(Vec<MemoryNode>),
}

const NODES: usize = 5;

/// How early a tick of the job may be claimed, and so how much later than its quarantine a tick must be that a node
/// cannot have forgotten; a little more than that.
const EARLY: Duration = Duration::from_secs(3);

/// How long the first connections may take before it is said that they do.
const PATIENCE: Duration = Duration::from_secs(1);

fn tell_all(reports: &[NodeReport], story: &Story) {
    reports
        .iter()
        .for_each(|report| story.tell(format_args!("  {report}")));
}

/// How long a node does not vote yet, if that is all that is wrong with it.
fn votes_in(report: &NodeReport) -> Option<Duration> {
    match &report.answer {
        NodeAnswer::NotAVote {
            reason: NotAVote::Quarantined { ready_in },
        } => Some(*ready_in),
        _ => None,
    }
}

impl Nodes {
    /// Chooses, and says in one line what was chosen and how to change it.
    pub(crate) fn choose(given: Vec<NodeConfig>, story: &Story) -> Result<Self, BoxError> {
        if !given.is_empty() {
            let count = given.len();
            story.tell(format_args!(
                "{count} node(s) from REDLOCK_NODES (unset it to use servers started here)"
            ));
            return Ok(Self::Given(given));
        }
        let binary = match ServerBinary::find() {
            Ok(binary) => binary,
            // Asked for and not there is a mistake; nothing there at all is a first run.
            Err(error) if std::env::var_os(redlock_sandbox::SERVER_VARIABLE).is_some() => {
                return Err(error.into());
            }
            Err(_) => {
                story.tell(format_args!(
                    "{NODES} nodes in memory (install redis-server or valkey-server, or set \
                     REDLOCK_NODES=redis://..., for real ones)"
                ));
                let nodes = (0..NODES).map(|_| MemoryNode::new()).collect();
                return Ok(Self::Memory(nodes));
            }
        };
        let servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
        let ports: Vec<_> = servers
            .iter()
            .map(|server| server.port().to_string())
            .collect();
        story.tell(format_args!(
            "{NODES} {} processes on ports {} (set REDLOCK_NODES=redis://... to use others)",
            binary.path().display(),
            ports.join(", ")
        ));
        Ok(Self::Children(servers))
    }

    /// The nodes, for one more client.
    pub(crate) fn for_client(&self) -> Vec<NodeConfig> {
        match self {
            Self::Given(nodes) => nodes.clone(),
            Self::Children(servers) => servers.urls().into_iter().map(Into::into).collect(),
            Self::Memory(nodes) => nodes.iter().cloned().map(Into::into).collect(),
        }
    }

    /// Returns whether to wait for these nodes: a deployment may start them at the same time as this program.
    pub(crate) fn are_deployed(&self, given_namespace: bool) -> bool {
        given_namespace && matches!(self, Self::Given(_))
    }

    /// Waits until a majority votes.
    ///
    /// Nodes that are new to a namespace may have forgotten leases in it, for all that a client can tell, and
    /// do not vote until the longest lease would be over.
    /// The example vouches for them if it started them, or if it locks nothing there that matters.
    pub(crate) async fn become_ready(
        &self,
        redlock: &Redlock,
        given_namespace: bool,
        story: &Story,
    ) -> Result<(), BoxError> {
        if !self.are_deployed(given_namespace) {
            redlock.dangerous_bless().await;
            return Ok(());
        }
        let started = Instant::now();
        // Each is told once: that nodes cannot be asked yet, and that they are in quarantine.
        let (mut told_of_silence, mut told_of_quarantine) = (false, false);
        loop {
            let reports = redlock.node_reports().await;
            let voting = reports.iter().filter(|r| r.answer == NodeAnswer::Reachable);
            if voting.count() >= redlock.majority() {
                if told_of_silence || told_of_quarantine {
                    story.tell(format_args!(
                        "they vote; what they may have forgotten of jobs is over in {EARLY:?}"
                    ));
                    sleep(EARLY).await;
                }
                return Ok(());
            }
            let quarantines: Vec<_> = reports.iter().filter_map(votes_in).collect();
            if quarantines.len() >= redlock.majority() && !told_of_quarantine {
                told_of_quarantine = true;
                let wait = quarantines.into_iter().max().unwrap_or_default();
                story.tell(format_args!(
                    "the nodes may have forgotten leases in this namespace: waiting {:.0} s until they vote",
                    wait.as_secs_f32()
                ));
                tell_all(&reports, story);
            } else if !told_of_silence && !told_of_quarantine && started.elapsed() > PATIENCE {
                told_of_silence = true;
                story.tell(format_args!(
                    "fewer than {} nodes can be asked: waiting until they listen",
                    redlock.majority()
                ));
                tell_all(&reports, story);
            }
            // A start may be delayed by a little more than the longest lease, and a quarantine takes as long again.
            if started.elapsed() > redlock.max_ttl() * 5 / 2 + Duration::from_secs(15) {
                let reports = reports.iter().map(|report| format!("\n  {report}"));
                let reports: String = reports.collect();
                return Err(format!("no majority of the nodes votes{reports}").into());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Kills one node if it is ours to kill; returns how many were killed.
    pub(crate) fn kill_one(&mut self, story: &Story) -> Result<usize, BoxError> {
        let Self::Children(servers) = self else {
            return Ok(0);
        };
        let victim = &mut servers[NODES / 2];
        let port = victim.port();
        victim.kill()?;
        story.tell(format_args!(
            "killed the node on port {port} in the middle of it (SIGKILL)"
        ));
        Ok(1)
    }
}
