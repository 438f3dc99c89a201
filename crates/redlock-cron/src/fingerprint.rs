//! A number that stands for a job's configuration, so that replicas which differ notice.

use sha2::{Digest, Sha256};

use crate::job::{Plan, Settings};

/// The same on all replicas that are configured alike and know the same zones.
pub(crate) fn fingerprint(plan: &Plan, settings: &Settings) -> u64 {
    let described = format!("{plan}\n{settings:?}");
    let hash = Sha256::digest(described.as_bytes());
    hash.iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Tz;
    use std::{collections::HashSet, time::Duration};

    #[test]
    fn whatever_differs_is_another() {
        let second = Some(Duration::from_secs(1));
        let settings = [
            Settings::default(),
            Settings {
                early: second,
                ..Settings::default()
            },
            Settings {
                start_within: second,
                ..Settings::default()
            },
            Settings {
                overlap: crate::Overlap::Wait,
                ..Settings::default()
            },
        ];
        let mut seen = HashSet::new();
        for settings in &settings {
            let mut plans = vec![Plan::Every(Duration::from_secs(5))];
            for pattern in ["0 0 2 * * *", "0 0 3 * * *"] {
                for zone in [Tz::UTC, Tz::Europe__Berlin] {
                    let (pattern, zone) = (pattern.into(), zone.into());
                    plans.push(Plan::Cron { pattern, zone });
                }
            }
            for plan in &plans {
                assert!(seen.insert(fingerprint(plan, settings)));
                assert!(!seen.insert(fingerprint(plan, settings)));
            }
        }
    }
}
