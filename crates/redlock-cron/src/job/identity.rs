//! The names of a job and of a tick on the nodes.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Utc};
use redlock_core::{ResourceKey, Series};

use crate::SetupError;

/// The namespace of a scheduler: 1 to 64 bytes, without control characters and slashes.
#[derive(Clone, Debug)]
pub(crate) struct JobNamespace(
    // invariant: checked by `new`
    Arc<str>,
);

/// A job by namespace and name: the same on all replicas, and on none but its own fleet's.
///
/// tokio-cron-scheduler's identifier is drawn at random in each process and can name nothing that
/// replicas share.
#[derive(Clone, Debug)]
pub(crate) struct JobId {
    namespace: JobNamespace,
    // invariant: 1 to 128 bytes, without control characters
    name: Arc<str>,
}

impl JobNamespace {
    pub(crate) fn new(name: &str) -> Result<Self, SetupError> {
        check("namespace", name, LONGEST_NAMESPACE)?;
        if name.contains('/') {
            let message =
                format!("{name:?} contains a slash; a slash separates it from the job's name");
            return Err(SetupError::misuse("namespace", message));
        }
        Ok(Self(name.into()))
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0
    }

    /// Returns the key of the moments at which a run of any job was requested, of which the scheduler's replicas read.
    pub(crate) fn bell_key(&self) -> ResourceKey {
        ResourceKey::new(BELL, &self.0).expect(BOUNDED)
    }
}

impl JobId {
    pub(crate) fn new(namespace: JobNamespace, name: &str) -> Result<Self, SetupError> {
        check("name", name, LONGEST_NAME)?;
        Ok(Self {
            namespace,
            name: name.into(),
        })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns a number that stands for the name, the same in all versions; another name may have it, too.
    pub(crate) fn number(&self) -> u64 {
        super::fingerprint::number_of(&self.name)
    }

    pub(crate) fn namespace(&self) -> &JobNamespace {
        &self.namespace
    }

    /// Returns the key of the job's record, and of the lock under which its runs go on.
    pub(crate) fn job_key(&self) -> ResourceKey {
        ResourceKey::new(JOB, self).expect(BOUNDED)
    }

    /// Returns the lock of one tick's run, where runs may overlap.
    ///
    /// The tick is the scheduled instant, never the time of a wake-up, so that replicas which wake up
    /// at different times mean the same key.
    pub(crate) fn tick_key(&self, tick: DateTime<Utc>) -> ResourceKey {
        ResourceKey::new(TICK, format_args!("{self}@{}", tick.timestamp_millis())).expect(BOUNDED)
    }

    /// Returns the name of the slots of the job's runs, if a limited number of them may overlap.
    pub(crate) fn slots_key(&self) -> ResourceKey {
        ResourceKey::new(SLOT, self).expect(BOUNDED)
    }

    /// Returns the lock of the claims in a series that no run follows.
    pub(crate) fn lock_of(&self, series: Series) -> ResourceKey {
        ResourceKey::new(MOMENT, format_args!("{self}@{series}")).expect(BOUNDED)
    }

    /// Returns the namespace and the name of the job whose record has this key.
    pub(crate) fn of_key(key: &str) -> Option<(&str, &str)> {
        let (class, job) = key.split_once(':')?;
        (class == JOB).then(|| job.split_once('/'))?
    }
}

/// Injective: the first slash ends the namespace, and in a tick's key the last `@` ends the name.
impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace.0, self.name)
    }
}

fn check(field: &'static str, name: &str, longest: usize) -> Result<(), SetupError> {
    let wrong = match name {
        "" => "is empty".to_owned(),
        _ if name.len() > longest => format!("has {} bytes", name.len()),
        _ if name.chars().any(char::is_control) => "contains a control character".to_owned(),
        _ => return Ok(()),
    };
    let right = format!("it must have 1 to {longest} bytes and no control character");
    Err(SetupError::misuse(field, format!("{wrong}; {right}")))
}

/// The classes of keys that belong to jobs; no request should be able to name one.
const JOB: &str = "redlock-cron-job";
const TICK: &str = "redlock-cron-tick";
const SLOT: &str = "redlock-cron-slot";
const MOMENT: &str = "redlock-cron-moment";
const BELL: &str = "redlock-cron-bell";

const LONGEST_NAMESPACE: usize = 64;
const LONGEST_NAME: usize = 128;
const BOUNDED: &str =
    "namespace, name and a timestamp fit into a key and have no control characters";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::series::{PAUSES, STOPS};
    use std::collections::HashSet;

    fn id(namespace: &str, name: &str) -> JobId {
        JobId::new(JobNamespace::new(namespace).unwrap(), name).unwrap()
    }

    #[test]
    fn two_ticks_or_jobs_are_never_one_key() {
        let names = ["a", "a/b", "b", "a@1", "a@1@2", "b/a", "@", "/", ":"];
        let namespaces = ["a", "b", "a@1", ":", "a:b"];
        let ticks = [1, 2, 12, -1].map(|second| DateTime::from_timestamp(second, 0).unwrap());
        let mut keys = HashSet::new();
        for namespace in namespaces {
            for name in names {
                let id = id(namespace, name);
                assert!(keys.insert(id.job_key()), "{id}");
                for series in [PAUSES, STOPS] {
                    assert!(keys.insert(id.lock_of(series)), "{id}");
                    assert_eq!(JobId::of_key(id.lock_of(series).as_str()), None);
                }
                let job = id.job_key();
                assert_eq!(JobId::of_key(job.as_str()), Some((namespace, name)));
                for tick in ticks {
                    assert!(keys.insert(id.tick_key(tick)), "{id} {tick}");
                }
            }
        }
    }

    #[test]
    fn the_longest_names_make_keys() {
        let id = id(&"n".repeat(64), &"j".repeat(128));
        assert!(id.job_key().as_str().starts_with("redlock-cron-job:nnn"));
        assert!(
            id.tick_key(DateTime::<Utc>::MIN_UTC)
                .as_str()
                .contains("@-")
        );
    }

    #[test]
    fn bad_names_are_refused_and_say_why() {
        for (bad, why) in [
            ("", "is empty"),
            ("a\nb", "control"),
            (&"x".repeat(65), "65 bytes"),
        ] {
            let error = JobNamespace::new(bad).unwrap_err();
            assert_eq!(error.field(), "namespace");
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(
            JobNamespace::new("a/b")
                .unwrap_err()
                .to_string()
                .contains("slash")
        );
        let namespace = JobNamespace::new("billing").unwrap();
        for (bad, why) in [
            ("", "is empty"),
            ("a\tb", "control"),
            (&"x".repeat(129), "129 bytes"),
            (&"x".repeat(300), "300 bytes"),
        ] {
            let error = JobId::new(namespace.clone(), bad).unwrap_err();
            assert_eq!(error.field(), "name");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
