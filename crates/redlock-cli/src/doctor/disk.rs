//! The data that a server keeps on disk, and the failures of the disk.

use std::sync::Arc;

use super::{
    facts::Facts,
    finding::{Findings, Level},
};
use crate::connection::Settings;

/// Adds what is wrong with the disk of one server, or with what it keeps there.
pub(super) fn check(node: &Arc<str>, facts: &Facts, settings: &Settings, findings: &mut Findings) {
    failures(node, facts, findings);
    persistence(node, facts, settings, findings);
    data(node, facts, settings, findings);
}

fn failures(node: &Arc<str>, facts: &Facts, findings: &mut Findings) {
    let info = &facts.info;
    if info.text("loading") == "1" {
        let advice = "wait until it has loaded its data";
        findings.at(
            node,
            Level::Failure,
            "loading",
            "is loading its data",
            advice,
        );
    }
    for (field, what) in [
        ("rdb_last_bgsave_status", "its last snapshot"),
        (
            "aof_last_write_status",
            "the last write to its append-only file",
        ),
        (
            "aof_last_bgrewrite_status",
            "the last rewrite of its append-only file",
        ),
    ] {
        if info.text(field) == "err" {
            findings.at(
                node,
                Level::Warning,
                "disk",
                format!("{what} failed"),
                "see its log and its disk; a lock needs no snapshots: save \"\" turns them off",
            );
        }
    }
}

fn persistence(node: &Arc<str>, facts: &Facts, settings: &Settings, findings: &mut Findings) {
    if settings.config.expert.dangerous_trust_persistence && facts.syncs.is_none() {
        findings.at(
            node,
            Level::Warning,
            "persistence",
            "dangerous_trust_persistence rests on appendfsync always, and it does not let that be asked",
            "allow +config|get, or make sure of appendfsync always yourself",
        );
    }
}

/// Checks that a server keeps nothing on disk, unless that is trusted.
fn data(node: &Arc<str>, facts: &Facts, settings: &Settings, findings: &mut Findings) {
    let appends = facts.info.text("aof_enabled") == "1";
    let appends = appends.then(|| "appendonly yes".to_owned());
    let saves = facts.saves.as_ref().filter(|points| !points.is_empty());
    let saves = saves.map(|points| format!("save \"{points}\""));
    let kept: Vec<String> = appends.into_iter().chain(saves).collect();
    if kept.is_empty() {
        return;
    }
    let kept = kept.join(", ");
    if settings.config.expert.dangerous_trust_delayed_restarts {
        findings.at(
            node,
            Level::Warning,
            "restart-guard",
            format!("dangerous_trust_delayed_restarts is set, and it keeps its data on disk ({kept})"),
            "set appendonly no and save \"\": a node that comes back with its mark is quarantined all the same",
        );
    } else if !settings.config.expert.dangerous_trust_persistence {
        findings.at(
            node,
            Level::Note,
            "persistence",
            format!("keeps its data on disk ({kept}), and is quarantined after a restart all the same"),
            "set appendonly no and save \"\": leases that have ended come back from a disk, and those that run may not",
        );
    }
}
