//! The rights with which clients hear of a caller's turn.

use redlock_core::{
    deadpool_redis::redis::{RedisError, cmd},
    node::RedisNode,
};

use crate::look::{
    probe::{NodeProbe, ProbedNode},
    settings::NodeSettings,
};

/// The obstacles to hearing of a caller's turn.
#[derive(Clone, Debug, Default)]
pub struct RightsForLines {
    /// The rights that the user lacks, in the words of `ACL SETUSER`.
    missing: Vec<String>,
    /// The commands that the server does not know.
    unknown: Vec<String>,
}

impl RightsForLines {
    /// Tries the commands, on a channel of no client.
    pub async fn of(probe: &mut NodeProbe, place: &ProbedNode, settings: &NodeSettings) -> Self {
        let channel = place.keys.channel(u64::MAX);
        let mut obstacles = Self::default();
        let (mut is_barred, mut may_use_channel) = (false, false);
        for right in RedisNode::RIGHTS_FOR_LINES.split_whitespace() {
            let tried = match right {
                "+publish" => {
                    let mut publish = cmd("PUBLISH");
                    publish.arg(&channel).arg("doctor");
                    probe.ask(&publish).await.map(drop)
                }
                // It would be the last command of the connection.
                _ => place.subscribe(&channel).await,
            };
            match tried {
                Err(error) if error.code() == Some("NOPERM") => {
                    is_barred = true;
                    let words = error.detail().unwrap_or_default();
                    if !words.contains("channel") {
                        obstacles.missing.push(right.to_owned());
                    }
                }
                // It does not tell whether the user may use the channel.
                Err(error) if is_unknown_command(&error) => {
                    obstacles.unknown.push(command_of(right));
                }
                _ => may_use_channel = true,
            }
        }
        if is_barred && !may_use_channel {
            obstacles.missing.insert(0, settings.channel_pattern());
        }
        obstacles
    }

    /// Returns what there is to say of a server, and what to do about it.
    pub fn finding(&self, user: &str) -> Option<(String, String)> {
        let Self { missing, unknown } = self;
        if !unknown.is_empty() {
            return Some(unknown_commands(unknown, TURNS));
        }
        (!missing.is_empty()).then(|| {
            let found = format!("its user {user} lacks rights without which {TURNS}");
            (found, format!("ACL SETUSER {user} {}", missing.join(" ")))
        })
    }
}

/// Returns that a server does not know commands, with what comes of it, and what to do.
pub(super) fn unknown_commands(unknown: &[String], without: &str) -> (String, String) {
    let commands = unknown.join(" and ");
    let found = format!("does not know {commands}, without which {without}");
    let advice = format!("remove rename-command for {commands} from its configuration");
    (found, advice)
}

const TURNS: &str =
    "its clients learn of a caller's turn only when they ask again, after random pauses";

/// Returns the command that a right in the words of `ACL SETUSER` is about.
pub(super) fn command_of(right: &str) -> String {
    let name = right.trim_start_matches('+');
    name.split('|')
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase()
}

/// Returns whether the server has no such command, as where its configuration has renamed it.
pub(super) fn is_unknown_command(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    error.code() == Some("ERR") && words.starts_with("unknown command")
}
