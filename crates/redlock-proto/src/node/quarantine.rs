use std::time::Duration;

/// The time for which a node that may have forgotten leases must not vote, and how that time is counted.
///
/// A master that comes back without its keys would help a second holder to a majority while the first
/// still holds its lease; the Redis documentation calls the cure *delayed restarts*.
/// Every client enforces it, inside the same script call that votes.
///
/// All clients of a namespace must use the same one: a client with a shorter
/// [`max_ttl`](Self::max_ttl) would let a node vote while longer leases are out.
/// So each node remembers the policy that it was given first and refuses others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quarantine {
    // In whole milliseconds, as nodes count.
    max_ttl: u64,
    length: u64,
    step: u64,
    /// In parts of a million.
    clock_rate_error: u64,
    trust_persistence: bool,
    guess_floors: bool,
    follow_failovers: bool,
    is_best_effort: bool,
}

impl Quarantine {
    /// For how long a client sends requests to a server that a majority of its Sentinels, or of the nodes of its
    /// Cluster, has named, without asking again.
    pub const FOLLOWED_WITHIN: Duration = Duration::from_secs(5);

    /// Returns the quarantine for leases of up to `max_ttl`, with clocks whose rates are off by at most
    /// `clock_rate_error` (0.01 is one per cent).
    pub fn new(max_ttl: Duration, clock_rate_error: f64) -> Self {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let step = (max_ttl / 32).clamp(Duration::from_millis(50), Duration::from_secs(1));
        // The node's clock may be fast by the error and the holder's slow by it. Two steps more, because
        // each time that the node's clock is set forward counts as one; 5 ms for rounding.
        let length = max_ttl + max_ttl.mul_f64(2.0 * clock_rate_error) + 2 * step;
        Self {
            max_ttl: ms(max_ttl),
            length: ms(length) + 5,
            step: ms(step),
            clock_rate_error: Duration::from_secs(1)
                .mul_f64(clock_rate_error)
                .as_micros()
                .try_into()
                .unwrap_or(u64::MAX),
            trust_persistence: false,
            guess_floors: false,
            follow_failovers: false,
            is_best_effort: false,
        }
    }

    /// Lets a node that still has its data vote after a restart.
    ///
    /// For masters that write every command to disk before they answer (`appendonly yes`, `appendfsync
    /// always`) and have no replicas that could take their place.
    /// A node that has lost its data is quarantined all the same.
    pub const fn trusting_persistence(mut self) -> Self {
        self.trust_persistence = true;
        self
    }

    /// Makes the quarantine longer by [`FOLLOWED_WITHIN`](Self::FOLLOWED_WITHIN), for nodes whose servers Sentinels or a Cluster name.
    ///
    /// While the promoted server is in quarantine, a client may send requests to the old one for that long.
    pub fn following_failovers(mut self) -> Self {
        let followed = u64::try_from(Self::FOLLOWED_WITHIN.as_millis()).unwrap_or(u64::MAX);
        // The node's clock may be fast by the error, and the client's slow by it.
        let error = followed * 2 * self.clock_rate_error / 1_000_000;
        self.length += followed + error;
        self.follow_failovers = true;
        self
    }

    /// Leaves the quarantine out, and lets a master vote that has replicas, for one server that clients trust to keep its
    /// data.
    ///
    /// If that server restarts without its data, or a replica takes its place that had not all of it, two clients may hold
    /// one lease for up to [`max_ttl`](Self::max_ttl).
    pub const fn best_effort(mut self) -> Self {
        self.length = 0;
        self.is_best_effort = true;
        self
    }

    /// Lets a node vote again though too few nodes that have kept their counters can be reached.
    ///
    /// The order of fencing tokens rests on the wall clock then; see [`Survey`](crate::Survey).
    pub const fn guessing_floors(mut self) -> Self {
        self.guess_floors = true;
        self
    }

    /// Returns whether a node votes again though too few that have kept their counters can be reached.
    pub(crate) const fn guesses_floors(&self) -> bool {
        self.guess_floors
    }

    /// Returns the longest time for which a node keeps a key.
    pub const fn max_ttl(&self) -> Duration {
        Duration::from_millis(self.max_ttl)
    }

    /// Returns how long a node does not vote.
    pub const fn length(&self) -> Duration {
        Duration::from_millis(self.length)
    }

    /// Returns the most that counts of the time between two looks at the node's clock, so that a clock that is set
    /// forward does not end the quarantine.
    ///
    /// Nodes in quarantine must be looked at twice as often.
    pub const fn step(&self) -> Duration {
        Duration::from_millis(self.step)
    }

    /// Returns whether others name the servers of the nodes.
    pub const fn follows_failovers(&self) -> bool {
        self.follow_failovers
    }

    /// Returns whether a node that still has its data may vote after a restart.
    pub const fn trusts_persistence(&self) -> bool {
        self.trust_persistence
    }

    /// Returns for how long a master that delays its restarts stays away after it stopped: the longest lease, the error
    /// of the clock that measures it, and a second.
    pub const fn absence(&self) -> Duration {
        let error = self.max_ttl * self.clock_rate_error / 1_000_000;
        Duration::from_millis(self.max_ttl + error + 1_000)
    }

    /// Returns whether a master votes that has replicas.
    pub const fn accepts_replicas(&self) -> bool {
        self.is_best_effort
    }

    /// Returns what nodes remember of it and compare, such as `30000ms,10000ppm,v4`: what its length rests on, and the
    /// version of what nodes store.
    pub fn to_wire(self) -> String {
        let word = |is_set: bool, word: &'static str| if is_set { word } else { "" };
        let persistence = word(self.trust_persistence, ",trust_persistence");
        let followed = word(self.follow_failovers, ",followed");
        let effort = word(self.is_best_effort, ",best_effort");
        let (max_ttl, rate_error) = (self.max_ttl, self.clock_rate_error);
        format!("{max_ttl}ms,{rate_error}ppm{persistence}{followed}{effort},v{VERSION}")
    }

    /// Returns the version in what a client has written; 0 if that is from before there were versions.
    pub(crate) fn version_of(wire: &str) -> u32 {
        let last = wire.rsplit_once(",v");
        last.and_then(|(_, version)| version.parse().ok())
            .unwrap_or(0)
    }

    /// Returns the settings in which what others have written differs from what this client has written: the name, their
    /// value and ours.
    pub(crate) fn differences(
        theirs: &str,
        ours: &str,
    ) -> Option<Vec<(&'static str, String, String)>> {
        let (theirs, ours) = (Self::settings_of(theirs)?, Self::settings_of(ours)?);
        let pairs = theirs.into_iter().zip(ours);
        let named = pairs
            .zip(SETTINGS)
            .map(|((theirs, ours), name)| (name, theirs, ours));
        Some(named.filter(|(_, theirs, ours)| theirs != ours).collect())
    }

    /// Returns the values of [`SETTINGS`] in what a client has written.
    fn settings_of(wire: &str) -> Option<[String; 6]> {
        let (_, rest) = wire.split_once("ms,")?;
        let (rate_error, flags) = rest.split_once("ppm")?;
        let rate_error: u32 = rate_error.parse().ok()?;
        let has = |word: &str| flags.split(',').any(|flag| flag == word).to_string();
        Some([
            format!("{:?}", Self::max_ttl_of(wire)?),
            (f64::from(rate_error) / 1e6).to_string(),
            has("trust_persistence"),
            has("delayed_restarts"),
            has("followed"),
            has("best_effort"),
        ])
    }

    /// Returns the longest time to live in what another client has written, if it can be read.
    pub fn max_ttl_of(wire: &str) -> Option<Duration> {
        let (max_ttl, _) = wire.split_once("ms")?;
        max_ttl.parse().ok().map(Duration::from_millis)
    }
}

/// What all clients of a namespace have alike.
const SETTINGS: [&str; 6] = [
    "max_ttl (REDLOCK_MAX_TTL)",
    "clock_rate_error",
    "dangerous_trust_persistence",
    "dangerous_trust_delayed_restarts (removed from this version)",
    "nodes whose servers others name (redis+sentinel://, redis+cluster://)",
    "best_effort (REDLOCK_GUARANTEE)",
];

/// The version of what nodes store and of what they do with a call.
///
/// It is raised with each change after which clients from before and after must not use one namespace at the same time;
/// nodes refuse those of another version than the one they know.
const VERSION: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    // Shows: L1.5.
    #[test]
    fn its_length_covers_the_longest_lease_and_two_clock_steps() {
        let quarantine = Quarantine::new(Duration::from_secs(2), 0.01);
        assert_eq!(quarantine.step(), Duration::from_millis(62));
        assert_eq!(
            quarantine.length(),
            Duration::from_millis(2_000 + 40 + 125 + 5)
        );
        let long = Quarantine::new(Duration::from_secs(3_600), 0.0);
        assert_eq!(long.step(), Duration::from_secs(1));
        assert_eq!(long.length(), Duration::from_millis(3_602_005));
    }

    // Shows: R7.3, R7.4, R7.5.
    #[test]
    fn it_is_longer_where_the_old_master_may_go_on_beside_the_promoted_one() {
        let plain = Quarantine::new(Duration::from_secs(2), 0.01);
        let followed = plain.following_failovers();
        let requests = Quarantine::FOLLOWED_WITHIN.mul_f64(1.02);
        assert_eq!(followed.length(), plain.length() + requests);
    }

    // Shows: R7.6.
    #[test]
    fn clients_that_follow_failovers_use_no_namespace_of_others() {
        let plain = Quarantine::new(Duration::from_secs(2), 0.01);
        let [theirs, ours] = [plain, plain.following_failovers()].map(Quarantine::to_wire);
        let found = Quarantine::differences(&theirs, &ours).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].0.contains("redis+sentinel://"), "{found:?}");
    }

    // Shows: R8.1, R8.2.
    #[test]
    fn best_effort_waits_for_nothing_and_shares_no_namespace_with_others() {
        let plain = Quarantine::new(Duration::from_secs(2), 0.01);
        for effort in [
            plain.best_effort(),
            plain.following_failovers().best_effort(),
        ] {
            assert_eq!(effort.length(), Duration::ZERO);
            assert!(effort.accepts_replicas());
            let found = Quarantine::differences(&effort.to_wire(), &plain.to_wire()).unwrap();
            assert!(
                found.iter().any(|(name, ..)| name.contains("best_effort")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_master_stays_away_for_longer_than_the_longest_lease_lasts_by_any_clock() {
        let quarantine = Quarantine::new(Duration::from_secs(30), 0.01);
        assert_eq!(quarantine.absence(), Duration::from_millis(31_300));
    }

    #[test]
    fn each_setting_that_differs_is_named_with_both_values() {
        let ours = Quarantine::new(Duration::from_secs(30), 0.01);
        let theirs = Quarantine::new(Duration::from_millis(1_500), 0.02).trusting_persistence();
        let found = Quarantine::differences(&theirs.to_wire(), &ours.to_wire()).unwrap();
        let expected = [
            ("max_ttl (REDLOCK_MAX_TTL)", "1.5s", "30s"),
            ("clock_rate_error", "0.02", "0.01"),
            ("dangerous_trust_persistence", "true", "false"),
        ];
        let found: Vec<_> = found
            .iter()
            .map(|(name, a, b)| (*name, &**a, &**b))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(Quarantine::differences("30s", &ours.to_wire()), None);
    }

    #[test]
    fn a_setting_that_was_removed_is_named_where_a_mark_has_it() {
        let ours = Quarantine::new(Duration::from_secs(30), 0.01);
        let theirs = "30000ms,10000ppm,delayed_restarts,v4";
        let found = Quarantine::differences(theirs, &ours.to_wire()).unwrap();
        let [(name, theirs, ours)] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(name.starts_with("dangerous_trust_delayed_restarts"));
        assert_eq!((&**theirs, &**ours), ("true", "false"));
    }

    #[test]
    fn its_version_is_told_from_what_a_client_has_written() {
        let quarantine = Quarantine::new(Duration::from_secs(30), 0.01);
        assert_eq!(quarantine.to_wire(), "30000ms,10000ppm,v4");
        let trusting = quarantine.trusting_persistence().to_wire();
        assert_eq!(trusting, "30000ms,10000ppm,trust_persistence,v4");
        assert_eq!(Quarantine::version_of(&trusting), VERSION);
        assert_eq!(Quarantine::version_of("30000ms,10000ppm,v12"), 12);
        for before in ["30000ms,10000ppm", "30000ms,10000ppm,trust_persistence"] {
            assert_eq!(Quarantine::version_of(before), 0, "{before}");
        }
        for wire in ["30000ms,10000ppm", "30000ms,10000ppm,v4"] {
            assert_eq!(Quarantine::max_ttl_of(wire), Some(Duration::from_secs(30)));
        }
    }
}
