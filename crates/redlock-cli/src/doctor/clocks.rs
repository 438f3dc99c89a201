//! The nodes' wall clocks, beside each other's and this machine's.

use std::sync::Arc;

use super::{
    facts::ClockFacts,
    finding::{Findings, Level},
};

/// Adds the clocks that are off, or run at another rate than they may.
pub(super) fn check(
    clocks: &[(&Arc<str>, ClockFacts)],
    clock_rate_error: f64,
    findings: &mut Findings,
) {
    let mut ahead: Vec<f64> = clocks.iter().map(|(_, clock)| clock.ahead).collect();
    ahead.sort_by(f64::total_cmp);
    let Some(middle) = ahead.get(ahead.len() / 2).copied() else {
        return;
    };
    if middle.abs() > TOLERANCE {
        findings.over_all(
            Level::Warning,
            "own-clock",
            format!(
                "this machine's clock is {} from the nodes'",
                seconds(-middle)
            ),
            "synchronise this machine's clock; the nodes' clocks decide about ticks of jobs",
        );
    }
    for (node, clock) in clocks {
        let off = clock.ahead - middle;
        if off.abs() > TOLERANCE {
            // The client knows that it is off, and not by how much.
            let size = format!(": it is {} from them", seconds(off));
            findings.add_to_failure(node, "clock", &size);
        }
        if off.abs() > DRIFTING && !findings.has(node, "clock") {
            findings.at(
                node,
                Level::Warning,
                "clock",
                format!("its clock is {} from the others'", seconds(off)),
                "synchronise it; from 1 s on the node does not vote",
            );
        }
        let least = clock.rate_error.abs() - clock.uncertainty;
        if least > clock_rate_error / 2.0 {
            let level = if least > clock_rate_error {
                Level::Failure
            } else {
                Level::Warning
            };
            findings.at(
                node,
                level,
                "clock-rate",
                format!("its clock runs {:+.1} % off", clock.rate_error * 100.0),
                "stop what slews or steps it (chrony: maxslewrate); leases rest on its rate",
            );
        }
    }
}

fn seconds(off: f64) -> String {
    if off.abs() < 1.0 {
        format!("{:+.0} ms", off * 1_000.0)
    } else {
        format!("{off:+.1} s")
    }
}

/// Clocks that differ by more have no vote.
const TOLERANCE: f64 = 1.0;
/// Clocks that are synchronised differ by less.
const DRIFTING: f64 = 0.25;
