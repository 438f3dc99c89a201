use std::{fmt, ops::AddAssign};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $label:literal,)+) => {
        /// The counts of one world, or of many: which of the protocol's mechanisms were at work, and how often.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// Returns each counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($label, self.$name),)+].into_iter()
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counters! {
    /// Worlds that were run.
    seeds: "seeds",
    /// Events that were simulated.
    events: "events",
    /// Attempts that were started.
    attempts: "attempts",
    /// Attempts that asked more nodes than they had at first.
    widened: "attempts that asked more nodes",
    /// Acquisitions that won a lease and had asked only a majority.
    won_narrowly: "acquisitions of a bare majority",
    /// Acquisitions that won a lease on several keys.
    won_sets: "acquisitions of several keys",
    /// Acquisitions that won a lease on keys that others may share.
    won_shared: "acquisitions of what others may share",
    /// Acquisitions that won a lease on keys that others shared at that moment.
    won_together: "acquisitions of what others shared",
    /// Leases whose holders held them alone and then let others share them.
    downgraded: "leases downgraded",
    /// Attempts of readers to have alone what they shared.
    upgrades: "upgrades tried",
    /// Readers that had alone at once what they had shared.
    upgraded: "leases upgraded",
    /// Acquisitions that won a lease.
    acquisitions: "acquisitions",
    /// Acquisitions that failed for good.
    not_acquired: "acquisitions given up at their wait's end",
    /// Acquisitions for which no caller waited any more.
    abandoned: "acquisitions abandoned",
    /// Tokens that had to be written back before their lease was handed out.
    write_backs: "write-backs",
    /// Claims whose tick was started.
    ticks_started: "ticks started",
    /// Claims of ticks that were claimed before, or behind the watermark.
    ticks_passed: "ticks that had passed",
    /// Claims that came too early, by the nodes' clocks.
    ticks_early: "ticks too early",
    /// Claims that came too late.
    ticks_late: "ticks too late",
    /// Claims that were refused because an earlier run was cut short and is to be settled first.
    ticks_too_soon: "ticks after runs cut short",
    /// Worlds in which a tick was started twice.
    ticks_again: "worlds with ticks started twice",
    /// Reports of what nodes remember of a job.
    statuses: "statuses read",
    /// Clocks of replicas that were set.
    wall_steps: "clocks of replicas set",
    /// Times that a node's clock was far behind.
    strays: "clocks far behind for a while",
    /// Rounds in which nodes were asked to remember a tick.
    ticks_committed: "rounds of commit",
    /// Claims that too few nodes confirmed to remember.
    ticks_unconfirmed: "claims that were not confirmed",
    /// Claims that a node refused because it may have forgotten the tick.
    ticks_forgotten: "ticks that a node may have forgotten",
    /// Rounds of extension that moved a deadline.
    extensions: "extensions",
    /// Rounds of extension that no majority confirmed.
    extensions_failed: "extensions that failed",
    /// Callers that were turned away because too many of their process waited.
    overloaded: "callers turned away",
    /// Callers whose turn did not come in time.
    waited_in_vain: "callers whose turn did not come",
    /// Leases that were handed over to another holder in the same process.
    handed_over: "leases handed over",
    /// Leases that were released.
    released: "leases released",
    /// Leases whose key was left to its time to live.
    left: "leases left to their time to live",
    /// Leases that reached their deadline.
    expired: "leases expired",
    /// Leases that a majority of the nodes had lost.
    revoked: "leases revoked",
    /// Leases that were held for as long as they may be.
    held_longest: "leases held for their longest",
    /// Keys that were given to nodes again.
    heals: "heals",
    /// Keys that nodes gave to callers which waited in line.
    gifts: "keys given to callers in line",
    /// Keys of these of which the client did not hear.
    gifts_lost: "of which without a word to them",
    /// Requests to keep a place in line for a caller that cannot wait there.
    places_kept: "places kept in line",
    /// Owners that were tombstoned.
    tombstones_left: "tombstones",
    /// Requests that came after the tombstone of their owner and were refused.
    tombstones: "tombstones that did their work",
    /// Quarantines that ended because the floor of the counters was known.
    seedings: "quarantines ended by seeding",
    /// Those of them for which the wall clock stood in for the floor.
    degraded: "of which with the wall clock for a floor",
    /// Quarantines that ended because an operator vouched for the node.
    blessings: "quarantines ended by blessing",
    /// Calls that nodes carried out as transactions.
    transactions: "transactions",
    /// Requests of transactions of which it was not clear what became.
    unclear: "requests that were asked again",
    /// Grants that were no votes, because of a quarantine.
    uncounted: "grants in quarantine",
    /// Requests of clients that were told something else than those before them.
    unlike: "requests of strangers refused",
    /// Acquisitions of strangers that won a lease before everything was repaired.
    won_by_strangers: "acquisitions of strangers",
    /// Nodes that were told not to vote because of their clock.
    disagreed: "clocks that disagreed",
    /// Calls whose answer came twice.
    duplicates: "answers that came twice",
    /// Calls that a node refused as a whole.
    refusals: "calls refused",
    /// Requests that were not sent because a node could not keep up.
    shed: "requests shed",
    /// Attempts that waited until requests before theirs were sent.
    queued: "attempts that waited for room",
    /// Acquires whose wait ended before their client came to their requests.
    too_slow: "acquires of clients that were too slow",
    /// Releases of what was shed.
    needless: "releases of what was never sent",
    /// Releases that failed and were repeated.
    delayed: "releases repeated",
    /// Connections that were cut or given up.
    cuts: "connections lost",
    /// Calls that ran after their connection was gone.
    late: "calls run late",
    /// Nodes that crashed and kept their data.
    crashes_kept: "crashes with data kept",
    /// Nodes that crashed and lost their data.
    crashes_lost: "crashes with data lost",
    /// Nodes that crashed and came back with old data.
    crashes_stale: "crashes with stale data",
    /// Nodes that had forgotten and stayed away until every lease was over.
    /// Nodes that were replaced behind connections that stood.
    promotions: "replacements behind a proxy",
    /// Nodes whose data was replaced by older data while their run stayed.
    rewinds: "data set back while the run stayed",
    /// Addresses that led to another server from then on.
    reroutes: "addresses that led elsewhere",
    /// Nodes that were told to forget everything.
    flushes: "flushes",
    /// Nodes that stood still.
    freezes: "nodes that stood still",
    /// Nodes that stood still in the middle of a call.
    seizures: "nodes that stood still in a call",
    /// Operations that failed while others of the same call may not have.
    failures: "operations that failed",
    /// Clients that stood still.
    pauses: "clients that stood still",
    /// Clients that were killed.
    kills: "clients killed",
    /// Clocks of nodes that were set.
    steps: "clocks set",
    /// Failovers in which the other server of a node was made its master.
    failovers: "failovers",
    /// Failovers to a server that had taken itself for a master all the time.
    failbacks: "of which to a master that was no replica",
    /// Masters that were made replicas.
    demotions: "masters made replicas",
    /// Informants that lost their file.
    files_lost: "informants that lost their file",
    /// Inquiries in which a client heard no pair from a majority.
    no_majorities: "inquiries without a majority",
    /// Connections that a client did not make because the server is not counted on.
    not_counted_on: "servers not counted on",
    /// Inquiries that were repeated because a roll must begin.
    asked_again: "inquiries repeated",
    /// Sessions with a server without a mark, by the roll by which the client had gone before.
    rolls_kept: "rolls kept without a mark",
    /// Rolls that began on a server without a mark.
    rolls_begun: "rolls begun",
    /// Rolls that took the place of one with too few informants left.
    rolls_replaced: "rolls replaced",
    /// Rolls that informants joined.
    rolls_joined: "rolls joined",
    /// Rolls of marks that a client adopted because its own was not confirmed.
    rolls_adopted: "rolls adopted",
    /// Sessions that ended because a majority named another pair.
    sessions_replaced: "sessions ended by another pair",
    /// Of these, the ones in which only the epoch was another.
    epochs_replaced: "of which by another epoch alone",
    /// Calls that a client did not send because its session was not confirmed.
    unconfirmed: "calls without a confirmation",
    /// Calls that reached a replica.
    by_replicas: "calls that reached a replica",
    /// Calls under another epoch than that of the call before at the same server.
    other_epochs: "calls under another epoch than before",
    /// Worlds in which two clients believed in leases on one key at once.
    overlaps: "worlds with overlaps",
    /// Worlds in which something went wrong because of a broken assumption.
    excused: "worlds with what a broken assumption excuses",
}

impl Counters {
    /// Returns the number of crashes of nodes, of all kinds.
    pub const fn crashes(&self) -> u64 {
        self.crashes_kept + self.crashes_lost + self.crashes_stale
    }

    /// Returns the number of faults of nodes, clients and connections.
    pub const fn faults(&self) -> u64 {
        self.crashes()
            + self.promotions
            + self.rewinds
            + self.reroutes
            + self.flushes
            + self.freezes
            + self.pauses
            + self.kills
            + self.steps
            + self.cuts
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (label, count) in self.iter() {
            writeln!(f, "{count:>14}  {label}")?;
        }
        Ok(())
    }
}
