//! Why a server is not counted on, in words for an operator.

use std::{fmt::Write as _, sync::Arc};

use deadpool_redis::redis::RedisError;
use redlock_proto::Shortfall;

use super::{
    super::error::{is_unknown_command, reason},
    directory::Subject,
    poll::Round,
};

/// Returns why no server is named by a majority of the informants that are known.
pub(super) fn no_majority(subject: &Subject, round: &Round, slot: u16) -> String {
    let count = round.hearing(slot).count();
    let needed = count / 2 + 1;
    refused(
        &Shortfall::NoMajority { needed, count },
        subject,
        round,
        slot,
    )
}

/// Returns why the server that most informants name is not counted on, and what to do.
pub(super) fn refused(
    shortfall: &Shortfall,
    subject: &Subject,
    round: &Round,
    slot: u16,
) -> String {
    let mut why = match shortfall {
        Shortfall::NoMajority { needed, count } => match subject {
            Subject::Master(name) => format!(
                "fewer than {needed} of {count} Sentinels name one server as {name} under one epoch"
            ),
            Subject::SlotOwner(_) => format!(
                "fewer than {needed} of {count} nodes of the Cluster name one owner of the namespace's slot under one epoch"
            ),
        },
        Shortfall::NotAllNamed { named, running } => format!(
            "{running} Sentinels watch this master and the URL names {named}; the URL of each client must name all of them"
        ),
        Shortfall::Unsettled {
            heard,
            count,
            greater: None,
        } => format!(
            "{heard} of {count} {} have answered; a list of them in the server's mark begins once all have",
            subject.informants()
        ),
        Shortfall::Unsettled {
            greater: Some(epoch),
            ..
        } => format!(
            "one of {} names a server under epoch {epoch}, which is greater; a list of them in the server's mark begins once all of them agree",
            subject.informants()
        ),
        Shortfall::Unlisted {
            listed,
            needed,
            known: None,
        } => format!(
            "of {}, {listed} are on the list in the server's mark and {needed} are needed; it lists others once all have answered",
            subject.informants()
        ),
        Shortfall::Unlisted {
            listed,
            needed,
            known: Some(known),
        } => {
            let forget = match subject {
                Subject::Master(name) => format!(
                    "if some of them are gone for good, type SENTINEL RESET {name} on each Sentinel, one after the other"
                ),
                Subject::SlotOwner(_) => {
                    "if some of them are gone for good, type CLUSTER FORGET on each node".to_owned()
                }
            };
            format!(
                "of {}, {listed} are on the list in the server's mark and {needed} are needed, and {known} are known, which is more than it counts; {forget}",
                subject.informants()
            )
        }
        Shortfall::Moving => {
            "its slot is on its way to another server; it votes a quarantine after the move has ended"
                .to_owned()
        }
        Shortfall::OwnerSilent => {
            "the owner of its slot does not answer itself, so its slot may be on its way".to_owned()
        }
    };
    if matches!(
        shortfall,
        Shortfall::NoMajority { .. } | Shortfall::Unlisted { .. }
    ) {
        forgotten(round, &mut why);
    }
    let testimonies = round.testimonies.iter();
    let ownerless = testimonies.filter(|it| it.statement(slot).names.is_none());
    match ownerless.count() {
        0 => {}
        count => {
            _ = write!(
                why,
                ", {count} of those that answer name no owner of the slot"
            )
        }
    }
    for failed in &round.failed {
        let _ = write!(why, ", {failed}");
    }
    why
}

/// Adds which members of a Cluster have failed for good, as far as it knows.
fn forgotten(round: &Round, why: &mut String) {
    let testimonies = round.testimonies.iter();
    let mut failed: Vec<&str> = testimonies.flat_map(|it| it.failed_members()).collect();
    failed.sort_unstable();
    failed.dedup();
    if !failed.is_empty() {
        let (count, ids) = (failed.len(), failed.join(" "));
        let _ = write!(
            why,
            "; {count} of them have failed: if they are gone for good, type CLUSTER FORGET on each node for {ids}"
        );
    }
}

/// Returns why a Sentinel does not answer the questions about a master.
pub(super) fn why_no_sentinel(error: &RedisError, master: &str) -> Arc<str> {
    match error.detail() {
        Some(words) if words.contains("No such master") => format!(
            "it knows no such master; SENTINEL MASTERS lists those that it knows, and the URL asks for {master}"
        )
        .into(),
        _ if is_unknown_command(error) => "it is no Sentinel".into(),
        _ if error.code() == Some("NOPERM") => {
            "its user may not ask: give it +sentinel|myid +sentinel|master +sentinel|sentinels".into()
        }
        _ if error.code() == Some("NOAUTH") => {
            "it wants a password: ?sentinel_password=… in the URL, and ?sentinel_user=… if it has users".into()
        }
        _ => reason(error),
    }
}
