//! P18: what callers cost that wait for keys of others.

use std::{thread::sleep, time::Duration};

use super::{Bench, pairs::micros};
use crate::{
    contender::Workload,
    failed::{Failed, Result},
    report::OURS,
    site::{Contender, Nodes},
    statistics::Series,
};

pub(super) fn p18(bench: &mut Bench) -> Result<()> {
    let title = format!("{KEYS} keys, for each of which {PROCESSES} processes wait; {NODES} nodes");
    bench.report.begin("P18", &title);
    let programs = bench.programs(&[OURS]);
    let Some(ours) = programs.first() else {
        return Ok(());
    };
    let nodes = Nodes::start(NODES)?;
    let start = || Contender::start(ours, &nodes.urls());
    let key = "bench:P18".to_owned();
    let mut holder = start()?;
    let held = holder.run(&Workload::Hold {
        key: key.clone(),
        tasks: 64,
        count: KEYS,
        ttl: Duration::from_secs(30),
    })?;
    let waiting = (0..PROCESSES).map(|_| start());
    let mut waiting = waiting.collect::<Result<Vec<_>>>()?;
    let wait = Workload::Wait {
        key,
        count: KEYS,
        length: LENGTH,
    };
    let [mut of_clients, mut of_nodes, mut of_all] = [(); 3].map(|()| Series::new());
    for _ in 0..bench.scale.repeats.min(MOST_REPEATS) {
        for process in &mut waiting {
            process.begin(&wait)?;
        }
        // The clients look at themselves at the same time.
        sleep(LENGTH / 4);
        let before = nodes.cpu()?;
        sleep(LENGTH / 2);
        let of_all_nodes = micros(nodes.cpu()?.saturating_sub(before)) / micros(LENGTH / 2);
        let mut of_all_clients = 0.0;
        for process in &mut waiting {
            let outcome = process.end(&wait)?;
            if outcome.failed + held.failed > 0 {
                return Err(Failed(format!("{} did not wait", outcome.failed)));
            }
            of_all_clients += micros(outcome.cpu) / micros(outcome.wall);
        }
        of_clients.push(of_all_clients);
        of_nodes.push(of_all_nodes);
        of_all.push(of_all_clients + of_all_nodes);
    }
    for (metric, figures) in [
        ("share of a core in the clients", of_clients),
        ("share of a core in the nodes", of_nodes),
        ("share of a core, for 1,000 keys", of_all),
    ] {
        bench.report.add("P18", OURS, metric, "", &figures);
    }
    Ok(())
}

const NODES: usize = 5;
const KEYS: u64 = 1_000;
const PROCESSES: usize = 8;
/// Long enough that half of it has the second request of each caller, which is not the first in its line.
const LENGTH: Duration = Duration::from_secs(48);
const MOST_REPEATS: usize = 3;
