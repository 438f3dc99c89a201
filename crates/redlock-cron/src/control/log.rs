//! The log of what operators did: one record for all jobs and keys of the namespace of a lock client.

use std::{fmt, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{Note, Printable, Redlock, ResourceKey, RunRecord, Series, Word};

use super::{ControlError, moment::moment_under};
use crate::{
    Action,
    clock::{to_instant, written},
    record::{is_unstarted, operator_of},
    replica::{Claims, default_name, finish_noted},
};

/// An action of an operator, as the nodes remember it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_cron::Action;
///
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let action = Action::by("alice").reason("the ledger moves");
/// redlock_cron::pause_with(&redlock, "billing", "close-day", &action).await?;
/// let logged = redlock_cron::actions(&redlock).await.ok_or("too few nodes answered")?;
/// assert_eq!((logged[0].verb(), logged[0].subject()), ("pause", "billing/close-day"));
/// assert_eq!((logged[0].by(), logged[0].reason()), (Some("alice"), Some("the ledger moves")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoggedAction {
    at: DateTime<Utc>,
    verb: Word,
    subject: String,
    operator: String,
}

impl LoggedAction {
    fn of(record: &RunRecord) -> Self {
        let note = record.note.as_ref().map_or("", Note::as_str);
        let length = usize::try_from(record.fingerprint).unwrap_or(usize::MAX);
        let (subject, operator) = note.split_at_checked(length).unwrap_or((note, ""));
        Self {
            at: to_instant(record.tick),
            verb: record.replica.clone(),
            subject: subject.to_owned(),
            operator: operator.trim_start().to_owned(),
        }
    }

    /// Returns its moment, by the nodes' clocks.
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Returns what was done, in a word, such as `pause`.
    pub fn verb(&self) -> &str {
        self.verb.as_str()
    }

    /// Returns the job, the key or the nodes on which it was done.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the name of the operator, if that was said.
    pub fn by(&self) -> Option<&str> {
        operator_of(&self.operator).0
    }

    /// Returns the reason, if that was said.
    pub fn reason(&self) -> Option<&str> {
        operator_of(&self.operator).1
    }
}

/// One line: the moment, the verb, the subject, the operator and the reason.
impl fmt::Display for LoggedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = written(self.at);
        let (verb, subject) = (Printable::new(self.verb()), Printable::new(&self.subject));
        write!(f, "{at} {verb} {subject}")?;
        if let Some(by) = self.by() {
            write!(f, " by {}", Printable::new(by))?;
        }
        match self.reason() {
            Some(reason) => write!(f, ": {}", Printable::new(reason)),
            None => Ok(()),
        }
    }
}

/// Adds an action to the log, which keeps the last hundred: a majority of the nodes remembers it.
///
/// `verb` is a word of up to 64 bytes; of the subject and the operator's words together, 200 bytes are kept.
/// The functions of this crate that take an [`Action`] log what they have done, and ignore that the log could not be
/// written.
///
/// # Errors
///
/// [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): no majority has confirmed it.
///
/// # Cancel safety
///
/// If the future is dropped, the action may be in the log or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_cron::Action;
///
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock_cron::log_action(&redlock, "deploy", "billing 7.2", &Action::by("ci")).await?;
/// # Ok(())
/// # }
/// ```
pub async fn log_action(
    redlock: &Redlock,
    verb: &str,
    subject: &str,
    action: &Action,
) -> Result<(), ControlError> {
    let claims = Claims::outside(redlock, verb.to_owned());
    // As the note has it, without control characters.
    let subject = Note::new(subject).map_or_else(String::new, |it| it.to_string());
    let length = subject.len() as u64;
    let ttl = redlock.ttl();
    let ask = |now| moment_under(log(), (length, ttl), now);
    let (won, _) = claims
        .claim_now(None, TimeDelta::zero(), ask)
        .await
        .map_err(|refusal| {
            let why = refusal.why();
            ControlError::unconfirmed(&subject, format!("no majority has confirmed it: {why}"))
        })?;
    let operator = action.to_note().unwrap_or_default();
    let note = format!("{subject} {operator}");
    finish_noted(&subject, won.claim, "done", Duration::ZERO, Some(&note)).await;
    Ok(())
}

/// Returns the last actions of operators, the newest first; `None` if too few nodes answered.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// for action in redlock_cron::actions(&redlock).await.ok_or("too few nodes answered")? {
///     println!("{action}");
/// }
/// # Ok(())
/// # }
/// ```
pub async fn actions(redlock: &Redlock) -> Option<Vec<LoggedAction>> {
    let claims = Claims::outside(redlock, default_name());
    let record = claims.record(log()).await?;
    let actions = record.of(Series::TICKS).runs.iter();
    let actions = actions.filter(|action| !is_unstarted(action));
    Some(actions.map(LoggedAction::of).collect())
}

fn log() -> ResourceKey {
    ResourceKey::new("redlock-cron-log", "actions").expect("it is a key")
}
