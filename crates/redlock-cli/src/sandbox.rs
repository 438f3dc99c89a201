//! `redlock sandbox`: local servers for a try-out.

use std::{ffi::OsString, time::Duration};

use clap::value_parser;
use redlock_core::{Config, Redlock};
use redlock_sandbox::{ClusterSet, SentinelSet, ServerBinary, ServerOptions, ServerSet};
use serde_json::json;
use tokio::process::Command;

use crate::{
    clock::duration,
    connection::NodeSettings,
    context::{CommandContext, run_program},
    exit::{CommandError, CommandResult},
};

/// The arguments of `sandbox`.
#[derive(clap::Args, Debug)]
pub(crate) struct SandboxArgs {
    /// The number of servers
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u8).range(1..=15))]
    nodes: u8,

    /// Give each of them a replica, and start three Sentinels that watch them
    #[arg(long)]
    sentinel: bool,

    /// Make them the masters of one Cluster, with a replica for each, and votes on as many as make an odd number
    #[arg(long, conflicts_with = "sentinel")]
    cluster: bool,

    /// The namespace in which the servers may vote at once
    #[arg(long, default_value = "redlock")]
    namespace: String,

    /// The longest lease
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    max_ttl: Duration,

    /// The command to run; without it, the servers run until Ctrl-C
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Starts servers, vouches for them, and runs a command that finds them in its environment.
pub(crate) async fn run(args: SandboxArgs, context: &CommandContext) -> CommandResult {
    let wrong = |error: &dyn std::error::Error| CommandError::wrong(error.to_string());
    let binary = ServerBinary::find().map_err(|error| wrong(&error))?;
    let nodes = usize::from(args.nodes);
    let (urls, sets) = if args.sentinel {
        let set = SentinelSet::start(&binary, nodes).map_err(|error| wrong(&error))?;
        let urls = set.urls();
        (urls, vec![set.sentinels, set.replicas, set.masters])
    } else if args.cluster {
        let set = ClusterSet::start(&binary, nodes).map_err(|error| wrong(&error))?;
        let url = match (nodes - 1) / 2 * 2 + 1 {
            1 => set.url(),
            votes => format!("{}?votes={}", set.url(), votes.min(9)),
        };
        (vec![url], vec![set.replicas, set.masters])
    } else {
        let options = ServerOptions::default();
        let set = ServerSet::start(&binary, nodes, &options).map_err(|error| wrong(&error))?;
        (set.urls(), vec![set])
    };
    context.serve(sets);
    // The command may be told of best effort by the environment.
    let mut config = Config::default();
    config.guarantee = Config::from_env()?.guarantee;
    let builder = Redlock::builder()
        .config(config)
        .nodes(&urls)
        .namespace(&args.namespace)
        .ttl(args.max_ttl.min(NodeSettings::TTL))
        .max_ttl(args.max_ttl);
    let client = context.client(builder).await?;
    client.dangerous_bless().await;

    let nodes = urls.join(",");
    // A client refuses a ttl that is longer than the longest lease, also its default.
    let ttl = (args.max_ttl < NodeSettings::TTL).then(|| format!("{}ms", args.max_ttl.as_millis()));
    let max_ttl = format!("{}ms", args.max_ttl.as_millis());
    let output = context.output;
    let Some((program, arguments)) = args.command.split_first() else {
        if output.is_json() {
            let namespace = &args.namespace;
            output.json(&json!({"nodes": urls, "namespace": namespace, "max_ttl": max_ttl}))?;
        } else {
            let ttl = ttl.map_or_else(String::new, |ttl| format!("\nexport REDLOCK_TTL={ttl}"));
            output.plain(&format!(
                "export REDLOCK_NODES={nodes}\nexport REDLOCK_NAMESPACE={}\nexport REDLOCK_MAX_TTL={max_ttl}{ttl}",
                args.namespace
            ))?;
        }
        output.progress("the servers run until Ctrl-C");
        return std::future::pending().await;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("REDLOCK_NODES", nodes)
        .env("REDLOCK_NAMESPACE", &args.namespace)
        .env("REDLOCK_MAX_TTL", max_ttl);
    if let Some(ttl) = ttl {
        command.env("REDLOCK_TTL", ttl);
    }
    run_program(command, program, context).await
}
