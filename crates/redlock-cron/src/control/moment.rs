//! The claim of the present moment: how an action, a request or a registration gets its line in a record.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use redlock_core::{ResourceKey, Series};
use tokio::time::{Instant, sleep};

use crate::{
    Outcome,
    clock::to_instant,
    job::JobId,
    replica::{After, ClaimRequest, Claims, Refusal, WonClaim},
    tick::SHORT_WAIT,
};

/// Returns the request of a moment of which the nodes remember this number, and that no run follows.
pub(super) fn moment_of(
    id: &JobId,
    series: Series,
    terms: (u64, Duration),
    wait: Duration,
    now: DateTime<Utc>,
) -> ClaimRequest {
    ClaimRequest {
        series,
        lock: id.lock_of(series),
        wait,
        ..moment_under(id.job_key(), terms, now)
    }
}

/// Returns the request of a moment in the record of this key, under the lock of the same key.
pub(super) fn moment_under(
    key: ResourceKey,
    (number, ttl): (u64, Duration),
    now: DateTime<Utc>,
) -> ClaimRequest {
    ClaimRequest {
        job: key.clone(),
        series: Series::TICKS,
        attempt: 1,
        lock: key,
        tick: now,
        early: EARLY,
        start_within: LATE,
        ttl,
        wait: CONFIRMED_WITHIN,
        fingerprint: number,
        after: After::Whatever,
        slots: None,
        place_within: None,
    }
}

impl Claims {
    /// Claims the present moment by the nodes' clocks, or the first after the newest that was claimed.
    ///
    /// The first moment that it asks for is that of this replica's clock, less `ahead`.
    /// With `place_within`, the claim waits for a place among the replica's runs first, for at most that time.
    /// A claim that waits for a lock for longer than its moment lasts asks for a later moment.
    pub(crate) async fn claim_now(
        &self,
        place_within: Option<Duration>,
        ahead: TimeDelta,
        ask: impl Fn(DateTime<Utc>) -> ClaimRequest,
    ) -> Result<(WonClaim, DateTime<Utc>), Refusal> {
        // Before the clock is read: the wait may be long.
        let place = self.place(place_within).await?;
        let present = || (self.clock.now() - ahead).trunc_subsecs(3);
        let mut now = present();
        let mut newest = None;
        let mut patient = None;
        let mut attempts = 0;
        while attempts < MOMENT_ATTEMPTS {
            let asked = Instant::now();
            let request = ask(now);
            let patient = *patient.get_or_insert(asked + request.wait);
            let wait = match request.wait {
                long if long > LONGEST_WAIT => LONGEST_WAIT.min(patient - asked),
                short => short,
            };
            let refusal = match self.claim(ClaimRequest { wait, ..request }).await {
                Ok(won) => {
                    let won = WonClaim {
                        _place: place,
                        ..won
                    };
                    return Ok((won, now));
                }
                Err(refusal) => refusal,
            };
            match refusal.off_by {
                Some(ahead) if refusal.outcome == Outcome::TooEarly => match newest {
                    None => now -= whole(ahead),
                    // The moment after the newest claim is still to come: wait until it may be claimed.
                    Some(_) if ahead <= CONFIRMED_WITHIN => sleep(ahead).await,
                    Some(until) => return Err(Refusal::still_to_come(until)),
                },
                // The window's edge would be past when the next claim comes.
                Some(behind) => now += whole(behind.saturating_add(LATE)),
                // What comes a moment later could not be claimed before the nodes forgot.
                None if refusal.outcome == Outcome::Forgotten => {
                    sleep(SHORT_WAIT).await;
                    now = present().max(now);
                }
                None if refusal.outcome == Outcome::NotWinner => {
                    let last = refusal.run.map_or(now, |run| to_instant(run.tick)).max(now);
                    newest = Some(last);
                    now = last + TimeDelta::milliseconds(1);
                }
                None if refusal.outcome == Outcome::Overlapping
                    && wait == LONGEST_WAIT
                    && asked.elapsed() >= wait
                    && Instant::now() < patient =>
                {
                    now += whole(asked.elapsed());
                    continue;
                }
                None => return Err(refusal),
            }
            attempts += 1;
        }
        Err(Refusal::new(Outcome::NotWinner, "others were in the way"))
    }
}

/// Converts a duration; one that is too long for the result becomes zero.
fn whole(by: Duration) -> TimeDelta {
    TimeDelta::from_std(by).unwrap_or(TimeDelta::zero())
}

/// How long to wait for others that pause or resume the job at the same time.
pub(super) const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// How often others may be in the way.
const MOMENT_ATTEMPTS: u32 = 10;

/// The window around a moment in which the nodes' clocks must be.
///
/// The same on all replicas, for it is `early` and `start_within` of these claims.
/// It is short because nodes that lost their data refuse what could have been claimed before.
pub(super) const EARLY: Duration = Duration::from_secs(2);
pub(super) const LATE: Duration = Duration::from_secs(60);

/// How long a claim of a moment may wait: nodes judge whether it is late before they judge its lock.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
