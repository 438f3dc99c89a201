//! The reasons for which a client does not count on a server, in words for an operator.

#[cfg(test)]
mod tests;

use std::{fmt::Write as _, sync::Arc};

use deadpool_redis::redis::RedisError;
use redlock_proto::Shortfall;

use super::{
    address::Address,
    naming_url::{NamingUrl, Subject},
    round::InquiryRound,
    testimony::Testimony,
};
use crate::speak::{
    error::{AUTHENTICATION, NotOpened, TLS_SERVER, is_unknown_command, reason},
    probe::{HANGS_UP, NO_TLS},
    rights,
};

/// Returns why no server is named by a majority of the informants that are known.
pub(super) fn no_majority(subject: &Subject, round: &InquiryRound, slot: u16) -> String {
    if let Some(why) = no_owner(subject, round, slot) {
        return why;
    }
    let count = round.hearing(slot).count();
    let needed = count / 2 + 1;
    refused(&Shortfall::NoMajority { needed, count }, subject, round)
}

/// Returns why the server that most informants name is not counted on, and what to do.
pub(super) fn refused(shortfall: &Shortfall, subject: &Subject, round: &InquiryRound) -> String {
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
            "{running} Sentinels watch this master and the URL names {named}; the URL of each client must name all of them, which SENTINEL SENTINELS lists"
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
            "one of {} names another server or term, under epoch {epoch}; a list of them in the server's mark begins once all of them agree",
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
    silent(round, &mut why);
    if let (Shortfall::NoMajority { count, .. }, Some(named)) = (shortfall, round.named)
        && named < *count
    {
        let _ = write!(
            why,
            "; the URL names {named}, and must name all {count} that the server's mark counts"
        );
    }
    why
}

/// Returns that the Cluster has no owner of a slot, and what to do, if none of its nodes that answer names one.
fn no_owner(subject: &Subject, round: &InquiryRound, slot: u16) -> Option<String> {
    let is_unowned = |testimony: &Testimony| testimony.statement(slot).names.is_none();
    let is_said = !round.testimonies.is_empty() && round.testimonies.iter().all(is_unowned);
    (matches!(subject, Subject::SlotOwner(_)) && is_said).then(|| {
        format!("the Cluster names no owner of the slot {slot}, which has the keys of the namespace; give the slot to a master, as redis-cli --cluster fix does")
    })
}

/// Adds which informants have not answered; what is wrong with several is said once.
fn silent(round: &InquiryRound, why: &mut String) {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in &round.failed {
        if !reasons.contains(&&**reason) {
            reasons.push(reason);
        }
    }
    for reason in reasons {
        let same = round.failed.iter().filter(|(_, its)| **its == *reason);
        let addresses: Vec<String> = same.map(|(address, _)| address.to_string()).collect();
        let _ = write!(why, ", {}: {reason}", addresses.join(" and "));
    }
}

/// Adds which members of a Cluster have failed for good, as far as it knows.
fn forgotten(round: &InquiryRound, why: &mut String) {
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

/// Returns what is wrong with the number of votes in the URL of a Cluster, and what to do.
pub(super) fn too_many_votes(votes: u8, masters: usize) -> Option<String> {
    let advice = match masters {
        masters if masters >= votes.into() => return None,
        0..3 => "leave votes out".to_owned(),
        masters => format!("write ?votes={}", (masters - 1) / 2 * 2 + 1),
    };
    Some(format!(
        "the URL has votes={votes}, and the Cluster has {masters} masters with slots, which is the most that votes can be; {advice} in the URL of all clients and move to a new namespace, or add masters"
    ))
}

/// Returns whether a Sentinel knows no master of the name that it was asked for.
pub(super) fn is_unknown_master(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    words.contains("No such master")
}

/// Returns that a Sentinel knows no master of the name that it was asked for, but these.
pub(super) fn unknown_master<'a>(known: impl Iterator<Item = &'a str>) -> Arc<str> {
    let mut known: Vec<&str> = known.filter(|name| is_name_of_master(name)).collect();
    known.sort_unstable();
    let more = if known.len() > MOST_NAMES {
        " and others"
    } else {
        ""
    };
    known.truncate(MOST_NAMES);
    match &*known {
        [] => "it knows no such master; write the name behind the hosts of the URL that SENTINEL MASTERS shows there".into(),
        known => {
            let known = known.join(", ");
            format!("it knows no such master, but {known}{more}; write one of these behind the hosts of the URL").into()
        }
    }
}

/// Returns why a Sentinel does not answer the questions about a master, and what to do.
pub(super) fn why_no_sentinel(error: &RedisError, url: &NamingUrl) -> Arc<str> {
    match error.code() {
        _ if is_unknown_command(error) => NO_SENTINEL.into(),
        Some("NOPERM") => {
            let rights = rights::FOR_SENTINELS;
            format!("its user may not ask it for the master; give this user {rights} there").into()
        }
        Some("NOAUTH") => {
            let has_one = url.settings.redis_settings().password().is_some();
            let why = match has_one {
                true => "it wants a password, and the one before the @ is the master's",
                false => "it wants a password",
            };
            format!("{why}; {SENTINEL_PASSWORD}").into()
        }
        _ => reason(error),
    }
}

/// Returns why there is no connection to an informant, and what to do in its URL; `why` is about any server.
pub(super) fn no_informant(why: &str, url: &NamingUrl) -> Arc<str> {
    let is_sentinel = !url.is_cluster();
    match why {
        TLS_SERVER if is_sentinel => "it speaks TLS; write ?sentinel_tls=yes, or rediss+sentinel:// if the master does, too",
        TLS_SERVER => "it speaks TLS; write rediss+cluster://",
        HANGS_UP if is_sentinel => {
            "it hangs up without an answer, as a TLS port does; write ?sentinel_tls=yes, or rediss+sentinel:// if the master speaks TLS, too"
        }
        HANGS_UP => "it hangs up without an answer, as a TLS port does; write rediss+cluster://",
        NO_TLS if is_sentinel => "it does not speak TLS; write ?sentinel_tls=no, or redis+sentinel:// if the master does not, either",
        NO_TLS => "it does not speak TLS; write redis+cluster://",
        AUTHENTICATION if is_sentinel && url.has_sentinel_password() => "it refuses ?sentinel_user= or ?sentinel_password=; write those that it knows, or neither if it wants none",
        other => other,
    }
    .into()
}

/// Returns why there is no session with the server that a majority names, and what to do if it is named by an address
/// that leads elsewhere.
pub(super) fn no_server(url: &NamingUrl, server: &Address, why: &NotOpened) -> String {
    let names = url.subject.informants();
    let reason = &why.reason;
    let said = format!("{names} say that its server is {server}: {reason}");
    let is_cluster = url.is_cluster();
    if reason.contains("NotValidForName") {
        let advice = if is_cluster {
            "set cluster-announce-hostname on each node to the name in its certificate"
        } else {
            "let Sentinels and servers name each other by the names in their certificates: sentinel announce-hostnames yes, and replica-announce-ip NAME"
        };
        return format!("{said}; {advice}");
    }
    if !why.is_unreachable {
        return said;
    }
    let mut informants = url.informants.iter().map(Address::of);
    let is_wrong_loopback = server.is_loopback() && !informants.all(|it| it.is_loopback());
    let condition = if is_wrong_loopback {
        "a loopback address leads each machine to itself:"
    } else {
        "if it runs and clients do not reach it there,"
    };
    let advice = if is_cluster {
        "set cluster-announce-ip and cluster-announce-port on each node to what they reach"
    } else {
        "name it in sentinel monitor by an address that they reach, and set replica-announce-ip and replica-announce-port on its servers"
    };
    format!("{said}; {condition} {advice}")
}

/// Returns whether a name is one that the URL may have, which may be shown to operators.
fn is_name_of_master(name: &str) -> bool {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(is_of_a_name)
}

/// More names of masters than that fill a line.
const MOST_NAMES: usize = 8;
const NO_SENTINEL: &str = "it is no Sentinel; give the port of one, such as 26379";
const SENTINEL_PASSWORD: &str =
    "write ?sentinel_password=… behind the master's name, and &sentinel_user=… if it has users";
