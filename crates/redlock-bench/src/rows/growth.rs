//! P11: what grows, and what must not.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Bench,
    pairs::{Pairs, micros},
};
use crate::{
    contender::Workload,
    failed::{Failed, Result},
    report::{Table, number},
    site::{Contender, Nodes, Program},
    statistics::{Series, Summary, ratios},
};

pub(super) fn p11(bench: &mut Bench) -> Result<()> {
    let title = "growth with nodes, waiters and keys; mutex is tokio's own, with waiters";
    bench.report.begin("P11", title);
    let mut mutex = None;
    for program in bench.programs(&["mutex"]) {
        mutex = Some(waiters(bench, &program)?);
    }
    for program in bench.programs(&["ours"]) {
        nodes(bench, &program)?;
        let all = waiters(bench, &program)?;
        for (waiters, figures) in all {
            let Some(of_mutex) = mutex.as_ref().and_then(|mutex| mutex.get(&waiters)) else {
                continue;
            };
            let metric = format!("hand-over p50, {waiters} waiters");
            let ratios = ratios(&figures, of_mutex);
            bench
                .report
                .add("P11", &program.name, metric, "mutex", &ratios);
        }
        keys(bench, &program)?;
    }
    Ok(())
}

/// Measures one task over more and more nodes.
fn nodes(bench: &mut Bench, program: &Program) -> Result<()> {
    let sets: Vec<_> = NODES.map(Nodes::start).into_iter().collect::<Result<_>>()?;
    let start = |nodes: &Nodes| Contender::start(program, &nodes.urls());
    let mut contenders: Vec<_> = sets.iter().map(start).collect::<Result<_>>()?;
    let mut all: Vec<_> = contenders.iter().map(Pairs::of).collect();
    let workload = Workload::Pairs {
        tasks: 1,
        length: bench.scale.sample,
    };
    for repeat in 0..=bench.scale.repeats {
        for turn in 0..contenders.len() {
            let index = (repeat + turn) % contenders.len();
            let outcome = contenders[index].run(&workload)?;
            // The first one does not count.
            if repeat > 0 {
                all[index].add(&outcome, None)?;
            }
        }
    }
    let all = all.into_iter().map(|pairs| pairs.p50);
    let lines = NODES.into_iter().zip(all);
    let lines = lines.map(|(nodes, p50)| (format!("p50 of a pair, {}", many(nodes, "node")), p50));
    compare(bench, &program.name, "1 node", &lines.collect::<Vec<_>>());
    Ok(())
}

/// Measures more and more callers for one key, which each releases as soon as it has it.
fn waiters(bench: &mut Bench, program: &Program) -> Result<BTreeMap<usize, Series>> {
    let nodes = Nodes::start(5)?;
    let mut contender = Contender::start(program, &nodes.urls())?;
    let mut all = WAITERS.map(|_| Series::new());
    for repeat in 0..bench.scale.repeats {
        for (waiters, figures) in WAITERS.into_iter().zip(&mut all) {
            let outcome = contender.run(&Workload::HotKey {
                key: format!("bench:P11:{waiters}:{repeat}"),
                waiters,
                hold: Duration::ZERO,
                length: bench.scale.sample,
            })?;
            if outcome.overlaps + outcome.failed > 0 {
                return Err(Failed(format!("{}: {outcome:?}", program.name)));
            }
            figures.push(micros(outcome.hand_over.p50));
        }
    }
    let all: BTreeMap<usize, Series> = WAITERS.into_iter().zip(all).collect();
    let lines = all.iter();
    let lines =
        lines.map(|(waiters, p50)| (format!("hand-over p50, {waiters} waiters"), p50.clone()));
    compare(
        bench,
        &program.name,
        "10 waiters",
        &lines.collect::<Vec<_>>(),
    );
    Ok(all)
}

/// Uses many keys once, of which nothing may stay.
fn keys(bench: &mut Bench, program: &Program) -> Result<()> {
    let nodes = Nodes::start(5)?;
    let mut contender = Contender::start(program, &nodes.urls())?;
    let (mut client, mut server) = (Series::new(), Series::new());
    let count = bench.scale.keys / PARTS;
    for _ in 0..PARTS {
        let outcome = contender.run(&Workload::Keys { tasks: 64, count })?;
        if outcome.failed > 0 {
            return Err(Failed(format!("{} pairs failed", outcome.failed)));
        }
        client.push(outcome.memory.map_or(f64::NAN, |bytes| bytes as f64));
        server.push(nodes.memory()?);
    }
    let mut table = Table::new(["MB after so many keys, used once", "client", "all nodes"]);
    for (part, (client, server)) in client.iter().zip(&server).enumerate() {
        let keys = (count * (part as u64 + 1)).to_string();
        table.add([keys, number(client / 1e6), number(server / 1e6)]);
    }
    eprintln!("\n  {}\n{}", program.name, table.text());
    let growth = |memory: &Series| vec![memory[memory.len() - 1] / memory[0]];
    let mut add = |metric, memory: &Series| {
        let report = &mut bench.report;
        report.add("P11", &program.name, metric, FIRST, &growth(memory));
    };
    add("memory of the client after all keys", &client);
    add("memory of the nodes after all keys", &server);
    Ok(())
}

/// Prints lines, and adds each compared with the one whose name ends with `base`.
fn compare(bench: &mut Bench, who: &str, base: &'static str, lines: &[(String, Series)]) {
    let header = format!("× {base}");
    let mut table = Table::new([
        "medians; min..max of the repeats",
        "µs",
        &header,
        "min..max",
    ]);
    let bases = lines
        .iter()
        .find(|line| line.0.ends_with(&format!(" {base}")));
    let bases = bases.map(|line| line.1.clone()).unwrap_or_default();
    for (name, figures) in lines {
        let ratios = ratios(figures, &bases);
        let Summary { median, min, max } = Summary::of(&ratios);
        table.add([
            name.clone(),
            number(Summary::of(figures).median),
            number(median),
            format!("{}..{}", number(min), number(max)),
        ]);
        bench.report.add("P11", who, name.clone(), base, &ratios);
    }
    eprintln!("\n  {who}\n{}", table.text());
}

fn many(count: usize, what: &str) -> String {
    if count == 1 {
        format!("{count} {what}")
    } else {
        format!("{count} {what}s")
    }
}

const NODES: [usize; 4] = [1, 3, 5, 7];
const WAITERS: [usize; 5] = [2, 10, 100, 1_000, 10_000];
/// In how many parts the keys are used, after each of which memory is looked at.
const PARTS: u64 = 10;
const FIRST: &str = "that after a tenth of them";
