//! The names of the environment's variables, and what is close to one.

use super::expert::removed;
use crate::BuildError;

/// Those that [`Config::from_env`](crate::Config::from_env) reads.
const KNOWN: &[&str] = &[
    "REDLOCK_NODES",
    "REDLOCK_GUARANTEE",
    "REDLOCK_NAMESPACE",
    "REDLOCK_LABEL",
    "REDLOCK_TTL",
    "REDLOCK_MAX_TTL",
    "REDLOCK_WAIT",
    "REDLOCK_QUORUM_WAIT",
    "REDLOCK_NODE_TIMEOUT",
    "REDLOCK_CONNECT_TIMEOUT",
    "REDLOCK_HEARTBEAT",
    "REDLOCK_WAIT_FOR_REPLICAS",
    "REDLOCK_MAX_WAITERS_PER_KEY",
];

/// Settings that are not taken from the environment, and where they are set.
const ELSEWHERE: &[(&str, &str)] = &[
    ("CLOCK_RATE_ERROR", "in a file or by the builder"),
    ("CONNECT_LAZILY", "by the builder"),
    ("VERBATIM_KEYS", EXPERT),
    ("TRUST_PERSISTENCE", EXPERT),
    ("GUESS_FENCING_FLOOR", EXPERT),
];

const EXPERT: &str = "in the table `expert` of a file, or by the builder's `expert`";

/// Refuses a variable that is meant for the client and would be ignored.
pub(super) fn check(names: impl Iterator<Item = String>) -> Result<(), BuildError> {
    for name in names {
        let is_ours = name
            .get(..PREFIX.len())
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        if !is_ours || KNOWN.contains(&&*name) {
            continue;
        }
        let upper = name.to_ascii_uppercase();
        let setting = &upper[PREFIX.len()..];
        let setting = setting.strip_prefix("EXPERT_").unwrap_or(setting);
        let setting = setting.strip_prefix("DANGEROUS_").unwrap_or(setting);
        if let Some((_, place)) = ELSEWHERE.iter().find(|(known, _)| *known == setting) {
            let message = format!("is no variable of the client; set it {place}");
            return Err(BuildError::misuse(name, message));
        }
        if let Some(advice) = removed(setting) {
            return Err(BuildError::misuse(name, advice));
        }
        let nearest = KNOWN.iter().min_by_key(|known| distance(known, &upper));
        match nearest {
            Some(known) if distance(known, &upper) <= SLIPS => {
                let message = format!("is no variable of the client; did you mean {known}?");
                return Err(BuildError::misuse(name, message));
            }
            _ => tracing::debug!(
                target: "redlock::config",
                %name,
                "a variable of the environment that the client ignores"
            ),
        }
    }
    Ok(())
}

/// Returns how many letters must be added, left out or changed to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

const PREFIX: &str = "REDLOCK_";

/// So many letters of a name may be wrong for it to be a slip.
const SLIPS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Option<String> {
        let checked = check(std::iter::once(name.to_owned()));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn a_variable_with_a_slip_is_refused_and_the_right_one_named() {
        let slips = [
            ("REDLOCK_WAITT", "REDLOCK_WAIT?"),
            ("REDLOCK_NODE", "REDLOCK_NODES?"),
            ("REDLOCK_MAXTTL", "REDLOCK_MAX_TTL?"),
            ("REDLOCK_TLL", "REDLOCK_TTL?"),
            ("redlock_wait", "REDLOCK_WAIT?"),
            ("REDLOCK_NODE_TIMEOUTS", "REDLOCK_NODE_TIMEOUT?"),
        ];
        for (name, meant) in slips {
            let refused = refused(name).unwrap_or_default();
            assert!(refused.starts_with(name), "{name}: {refused}");
            assert!(refused.ends_with(meant), "{name}: {refused}");
        }
        for (setting, place) in ELSEWHERE {
            for prefix in [
                "REDLOCK_",
                "redlock_",
                "REDLOCK_EXPERT_",
                "REDLOCK_DANGEROUS_",
            ] {
                let refused = refused(&format!("{prefix}{setting}"));
                assert!(refused.is_some_and(|text| text.ends_with(place)));
            }
        }
        for name in [
            "REDLOCK_DANGEROUS_TRUST_DELAYED_RESTARTS",
            "REDLOCK_ACCEPT_REPLICAS",
        ] {
            let gone = refused(name).unwrap_or_default();
            assert!(gone.contains("leave it out"), "{name}: {gone}");
        }
    }

    #[test]
    fn other_programs_may_have_variables_too() {
        let others = [
            "REDLOCK_PORT",
            "REDLOCK_PORT_6379_TCP_ADDR",
            "REDLOCK_SERVICE_HOST",
            "REDLOCK_REDIS_SERVER",
            "REDLOCK_SEED",
            "REDLOCK_",
            "PATH",
        ];
        for name in others.iter().chain(KNOWN) {
            assert_eq!(refused(name), None, "{name}");
        }
    }
}
