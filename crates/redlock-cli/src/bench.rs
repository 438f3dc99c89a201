//! `redlock bench`: measures round trips and acquires of a deployment, and the shortest ttl that it allows.

use std::time::Duration;

use futures_util::future::{join, join_all};
use redlock_core::{AcquireOptions, Redlock, Wait, deadpool_redis::redis::cmd};
use serde_json::json;
use uuid::Uuid;

use crate::{
    clock::{self, duration, millis, rounded},
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    output::{LineMark, Output},
    probe::{self, Timings},
};

/// The arguments of `bench`.
#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// The duration of each measurement
    #[arg(long = "for", value_name = "TIME", default_value = "2s", value_parser = duration)]
    length: Duration,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Measures over scratch keys, which are released.
pub(crate) async fn run(args: BenchArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    if args.length.is_zero() {
        return Err(CommandError::wrong(
            "--for 0s measures nothing: give 1s or more",
        ));
    }
    let client = context.client(settings.builder()).await?;
    // A client of its own contends as another process would.
    let other = context.client(settings.builder()).await?;
    let places = probe::connect(&settings).await;
    let trips = places.iter().map(|place| async move {
        match &place.probe {
            Ok(probe) => Ok(probe.clone().measure(&cmd("PING")).await),
            Err(why) => Err(why.clone()),
        }
    });
    let trips = join_all(trips).await;
    let name = format!("redlock-bench:{}", Uuid::new_v4().simple());
    // A key of its own: a lease that is handed over asks no node.
    let own = |number| format!("{name}:{number}");
    let acquire = acquires(&client, own, args.length).await?;
    let shared = |_| name.clone();
    let [one, two] = [&client, &other].map(|client| acquires(client, shared, args.length));
    let (one, two) = join(one, two).await;
    let contended = one?.and(two?);
    let bearable = bearable(&acquire);
    let output = context.output;
    if output.is_json() {
        let trips = places.iter().zip(&trips);
        let nodes = trips.map(|(place, trip)| {
            let trip = trip.as_ref().ok().map(Timings::to_json);
            json!({"node": &*place.name, "round_trip_ms": trip})
        });
        output.json(&json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "acquire_ms": acquire.to_json(),
            "contended_wait_ms": contended.to_json(),
            "contended_turns": contended.count(),
            "shortest_ttl_ms": millis(bearable),
        }))?;
        return Ok(Exit::Yes);
    }
    for (place, trip) in places.iter().zip(&trips) {
        match trip {
            Ok(trip) => line(output, &format!("{} round trip", place.name), trip)?,
            Err(why) => output.marked(LineMark::Bad, &format!("{} {why}", place.name))?,
        }
    }
    line(output, "acquire", &acquire)?;
    line(output, "acquire while two processes take turns", &contended)?;
    let turns = contended.count();
    output.line(&format!("{turns} turns in {}", rounded(args.length)))?;
    let ttl = settings.ttl();
    let (mark, verdict) = if ttl < bearable {
        (LineMark::Warning, "too short for these times")
    } else {
        (LineMark::Good, "long enough")
    };
    let text = format!(
        "a ttl from {} on bears these times; the configured one, {}, is {verdict}",
        rounded(bearable),
        rounded(ttl)
    );
    output.marked(mark, &text)?;
    Ok(Exit::Yes)
}

fn line(output: Output, what: &str, times: &Timings) -> std::io::Result<()> {
    let [p50, p99, max] = [50, 99, 100].map(|percent| rounded(times.percentile(percent)));
    output.line(&format!("{what}: {p50}, 99 %: {p99}, longest: {max}"))
}

/// Acquires and releases locks, each on the key of its number, and returns how long the acquires took.
async fn acquires(
    client: &Redlock,
    key: impl Fn(usize) -> String,
    length: Duration,
) -> Result<Timings, CommandError> {
    let begun = clock::now();
    let mut times = Vec::new();
    while begun.elapsed() < length {
        let key = key(times.len());
        let asked = clock::now();
        let guard = client.acquire_with(key, patient()).await?;
        times.push(asked.elapsed());
        // It may end by itself where nodes are slow.
        drop(guard.release().await);
    }
    Ok(Timings::new(times))
}

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(10)))
}

/// Renewals begin at a third of the ttl, and several must fit in what is left then.
fn bearable(acquire: &Timings) -> Duration {
    (acquire.percentile(99) * SAFE).max(Redlock::MIN_TTL)
}

/// The least ratio of a ttl to a slow acquire: three renewals fit into a third of such a ttl, and some time is left.
const SAFE: u32 = 10;
