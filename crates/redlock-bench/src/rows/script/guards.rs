//! P15: what each guard costs a server: the library of functions again, without that guard.

use super::{Script, site::Form};
use crate::{
    failed::{Failed, Result},
    rows::{Bench, each},
};

/// Measures the library as it is, and without each guard in turn.
pub(in crate::rows) fn p15(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds.div_ceil(3);
    let title = format!("what guards cost a server, by its own count; {rounds} rounds");
    bench.report.begin("P15", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let lines = [
        ("an acquire alone", 0),
        ("an acquire alone, without the look at the run", 0),
        ("an acquire alone, without the node's time", 0),
        ("an acquire alone, without its counter", 0),
        ("an acquire alone, without its tombstone", 0),
        ("an acquire alone, without all of these", 0),
        ("one of 16 acquires in a call", 6),
        ("one of 16 acquires, without the look at the run", 6),
        ("one of 16 acquires, without the node's time", 6),
        ("one of 16 acquires, without its counter", 6),
        ("one of 16 acquires, without these three", 6),
    ];
    each(&mut bench.report, "P15", lines, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 11]>> {
    let mut script = Script::start().await?;
    script.shared(Form::Functions).await?;
    let whole = script.site.library().await?;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        let mut round = [f64::NAN; 11];
        for (index, without) in VARIANTS.into_iter().enumerate() {
            let text = taken_out(&whole, without).ok_or_else(|| {
                Failed(format!(
                    "the library has no longer what is taken out: {without:?}"
                ))
            })?;
            script.site.replace(&text).await?;
            // The first calls check everything, because the library was loaded again and its memory is empty.
            script.shared(Form::Functions).await?;
            round[index] = script.alone(Form::Functions).await?.0;
            if let Some(place) = SHARED.iter().position(|variant| *variant == index) {
                round[6 + place] = script.shared(Form::Functions).await?.0;
            }
        }
        figures.push(round);
    }
    Ok(figures)
}

/// Returns the text of the library without the guards.
fn taken_out(library: &str, guards: &[Guard]) -> Option<String> {
    let mut text = library.to_owned();
    for (part, instead) in guards.iter().copied().flatten() {
        if text.matches(part).count() != 1 {
            return None;
        }
        text = text.replace(part, instead);
    }
    Some(text)
}

/// Parts of the library, and what stands there without the guard.
type Guard = &'static [(&'static str, &'static str)];

const LOOK: Guard = &[(
    "local info = redis.pcall('INFO', 'replication')\n  if info == said then return true end\n  if type(info) ~= 'string' or not string.find(info, data, 1, true) then return false end\n  said = info\n",
    "",
)];

const TIME: Guard = &[(
    "votes(owners[1], policy) and try('TIME')",
    "votes(owners[1], policy) and {0, 0}",
)];

const COUNTER: Guard = &[
    (
        "counters = try('HMGET', fence, unpack(ARGV, 5, 4 + needed))",
        "counters = {}",
    ),
    (
        "if counts > 0 and type(try('HSET', fence, unpack(counted, 1, counts))) == 'table' then return look(KEYS, ARGV) end",
        "",
    ),
];

/// Of an acquire that is alone in its call: its tombstone is the last key that is read.
const TOMBSTONE: Guard = &[(
    "try('MGET', unpack(KEYS, 1, #KEYS - 1))\n  if owners.err then return look",
    "try('MGET', unpack(KEYS, 1, #KEYS == 4 and 2 or #KEYS - 1))\n  if owners.err then return look",
)];

const VARIANTS: [&[Guard]; 6] = [
    &[],
    &[LOOK],
    &[TIME],
    &[COUNTER],
    &[TOMBSTONE],
    &[LOOK, TIME, COUNTER, TOMBSTONE],
];

/// The variants that are measured with 16 acquires in a call; there, tombstones stand between the keys.
const SHARED: [usize; 5] = [0, 1, 2, 3, 5];
