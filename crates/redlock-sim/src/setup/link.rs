//! The time limits of a link to a node.

use std::time::Duration;

use redlock_proto::LinkConfig;

use super::{MS, Micros};
use crate::random::Random;

/// Draws the limits of links: those of production, at the pace of these worlds.
///
/// Leases last for a second here and for ten there, so all times of links are shorter by so much or a little less.
/// As many requests travel together as there; some worlds have fewer calls in flight, so that links shed requests
/// with a few users too.
pub(super) fn draw(node_timeout: Micros, random: &mut Random) -> LinkConfig {
    let pace = random.pick(&[2, 5]);
    let (connect_timeout, lag_after) = (100 * MS, node_timeout);
    let times = |limit: Micros| pace * Duration::from_micros(limit);
    let production = LinkConfig::new(times(connect_timeout), times(lag_after));
    LinkConfig {
        connect_timeout: production.connect_timeout / pace,
        lag_after: production.lag_after / pace,
        give_up_after: production.give_up_after / pace,
        heartbeat: production.heartbeat / pace,
        shortest_pause: production.shortest_pause / pace,
        longest_pause: production.longest_pause / pace,
        calls: random.pick(&[2, 8, production.calls]),
        ..production
    }
}
