//! `redlock guide`: files to deploy nodes with, and their users, as they are in `docker/`.

use std::{fs, path::PathBuf, time::Duration};

use clap::ValueEnum;
use redlock_proto::Quarantine;
use serde::Serialize;

use crate::{
    clock::duration,
    connection::NodeSettings,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
};

/// The arguments of `guide`.
#[derive(clap::Args, Debug)]
pub(crate) struct GuideArgs {
    /// The system that runs the nodes, or access for the users, their rights and TLS
    platform: Platform,

    /// The longest lease of any client, which determines all waits
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    max_ttl: Duration,

    /// The namespace of the clients, in which health checks ask for votes; compose leaves its demo out then [default:
    /// redlock; in compose demo]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Adds the delay before a start, for nodes on which other clients also lock
    #[arg(long)]
    delayed: bool,

    /// Writes the files below this folder instead, such as DIR/docker/redis.conf
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Adds the files that the profile `metrics` of the composition mounts: for Prometheus and Grafana
    #[arg(long)]
    metrics: bool,
}

/// What nodes run under.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Platform {
    /// Units of systemd
    Systemd,
    /// A composition of containers
    Compose,
    /// Manifests of Kubernetes
    Kubernetes,
    /// Users with their rights, and TLS, for any server
    Access,
}

/// A file, and where it is in the repository.
#[derive(Debug, Serialize)]
struct File {
    path: &'static str,
    text: String,
}

/// Prints the files, each after a line with its name.
pub(crate) fn run(args: &GuideArgs, context: &CommandContext) -> CommandResult {
    let (least, most) = (
        Duration::from_millis(100),
        Duration::from_secs(24 * 60 * 60),
    );
    if !(least..=most).contains(&args.max_ttl) {
        return Err(CommandError::wrong("--max-ttl must be from 100ms to 24h"));
    }
    if args.namespace.as_deref().is_some_and(|name| !is_name(name)) {
        let message = "--namespace must be 1 to 32 letters, digits, `.`, `_` or `-`";
        return Err(CommandError::wrong(message));
    }
    let mut files = match args.platform {
        Platform::Systemd => vec![
            file("docker/redis.conf", REDIS),
            file("docker/access.conf", ACCESS),
            file("docker/systemd/redlock-node.service", NODE),
            file("docker/systemd/redlock-watch.service", WATCH),
            file("docker/systemd/environment", ENVIRONMENT),
        ],
        Platform::Access => vec![file("docker/access.conf", ACCESS)],
        Platform::Compose => vec![
            file("docker/compose.yaml", COMPOSE),
            file("docker/redis.conf", REDIS),
            file("docker/votes.sh", VOTES),
        ],
        Platform::Kubernetes => vec![File {
            path: "docker/kubernetes/redlock.yaml",
            text: KUBERNETES
                .replace("{{redis.conf}}", &indented(REDIS))
                .replace("{{votes.sh}}", &indented(VOTES)),
        }],
    };
    match (args.delayed, args.platform) {
        (false, _) => {}
        (true, Platform::Systemd) => files.push(file("docker/systemd/delayed.conf", DELAYED)),
        (true, Platform::Compose) => files.extend([
            file("docker/compose.delayed.yaml", DELAYED_COMPOSE),
            file("docker/delayed-restart.sh", DELAYED_RESTART),
        ]),
        (true, Platform::Kubernetes) => {
            let message = "on Kubernetes the delay belongs into the entrypoint of an image of your own: \
                redlock guide compose --delayed has it";
            return Err(CommandError::wrong(message));
        }
        (true, Platform::Access) => {
            return Err(CommandError::wrong("--delayed is for systemd and compose"));
        }
    }
    match (args.metrics, args.platform) {
        (false, _) => {}
        (true, Platform::Compose) => files.extend([
            file("docker/prometheus/prometheus.yml", PROMETHEUS),
            file("docker/prometheus/alerts.yml", ALERTS),
            file("docker/grafana/datasources.yaml", DATASOURCES),
            file("docker/grafana/dashboards.yaml", DASHBOARDS),
            file("docker/grafana/redlock.json", DASHBOARD),
        ]),
        (true, _) => return Err(CommandError::wrong("--metrics is for compose only")),
    }
    for file in &mut files {
        file.text = adapted(file, args);
    }
    if let Some(folder) = &args.dir {
        for File { path, text } in &files {
            let path = folder.join(path);
            let written = path.parent().map_or(Ok(()), fs::create_dir_all);
            let written = written.and_then(|()| fs::write(&path, text));
            written.map_err(|error| CommandError::wrong(format!("{}: {error}", path.display())))?;
            context
                .output
                .progress(&format!("wrote {}", path.display()));
        }
        return Ok(Exit::Yes);
    }
    if context.output.is_json() {
        context.output.json(&files)?;
        return Ok(Exit::Yes);
    }
    for File { path, text } in &files {
        context
            .output
            .plain(&format!("# ==> {path}\n{}", text.trim_end()))?;
    }
    Ok(Exit::Yes)
}

fn file(path: &'static str, text: &str) -> File {
    let text = text.to_owned();
    File { path, text }
}

/// Returns the text of a file with the waits for the given `max_ttl`, and the namespace, instead of the defaults.
fn adapted(file: &File, args: &GuideArgs) -> String {
    let (usual, wanted) = (Waits::of(Duration::from_secs(30)), Waits::of(args.max_ttl));
    let mut text = file.text.clone();
    let mut replace =
        |form: &dyn Fn(&Waits) -> String| text = text.replace(&form(&usual), &form(&wanted));
    let forms = [
        |name: &str, value: &str| format!("  {name}: \"{value}\"\n"),
        |name: &str, value: &str| format!("{name}={value}\n"),
    ];
    for form in forms {
        replace(&|waits| form("REDLOCK_MAX_TTL", &waits.max_ttl));
    }
    replace(&|waits| format!("leases of {} ", waits.words));
    replace(&|waits| format!("lease of any client, {}, ", waits.words));
    replace(&|waits| format!("/bin/sleep {}", waits.absence));
    replace(&|waits| format!("TimeoutStartSec={}", waits.absence + 60));
    let is_delayed = file.path.ends_with("delayed.yaml");
    replace(&|waits| {
        let delay = if is_delayed { waits.absence + 3 } else { 0 };
        format!("start_period: {}s", waits.quarantine + delay + 12)
    });
    replace(&|waits| format!("minReadySeconds: {}", waits.quarantine + 2));
    let is_for_clients =
        file.path.ends_with("/compose.yaml") || file.path.ends_with("/environment");
    // A client refuses a ttl that is longer than the longest lease, also its default.
    if is_for_clients && args.max_ttl < NodeSettings::TTL {
        for form in forms {
            let max_ttl = form("REDLOCK_MAX_TTL", &wanted.max_ttl);
            let both = max_ttl.clone() + &form("REDLOCK_TTL", &wanted.max_ttl);
            text = text.replace(&max_ttl, &both);
        }
    }
    let Some(wanted) = &args.namespace else {
        return text;
    };
    if file.path == "docker/access.conf" {
        return text.replace("{redlock}", &format!("{{{wanted}}}"));
    }
    if file.path == "docker/compose.yaml" {
        text = without_service(&text, "demo");
    }
    for usual in ["demo", "redlock"] {
        for (before, after) in [
            ("REDLOCK_NAMESPACE: \"", "\""),
            ("REDLOCK_NAMESPACE=", "\n"),
            ("votes.sh\", \"", "\""),
        ] {
            let named = |name: &str| format!("{before}{name}{after}");
            text = text.replace(&named(usual), &named(wanted));
        }
    }
    text
}

/// Returns a composition without a service, and without the comment in front of it.
fn without_service(composition: &str, service: &str) -> String {
    let name = format!("  {service}:");
    let (mut kept, mut is_in_it) = (Vec::new(), false);
    for line in composition.lines() {
        if line == name {
            is_in_it = true;
            while kept
                .last()
                .is_some_and(|line: &&str| line.starts_with("  #"))
            {
                kept.pop();
            }
        } else if is_in_it {
            // The next service begins, or the comment in front of it.
            is_in_it = line.starts_with("   ") || line.is_empty();
        }
        if !is_in_it {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

/// Returns whether a namespace can be written into all files as it is.
fn is_name(namespace: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=32).contains(&namespace.len()) && namespace.chars().all(is_plain)
}

/// What follows from the longest lease, in whole seconds.
struct Waits {
    max_ttl: String,
    words: String,
    /// How long a node does not vote.
    quarantine: u64,
    /// How long a delayed node stays away.
    absence: u64,
}

impl Waits {
    fn of(max_ttl: Duration) -> Self {
        let policy = Quarantine::new(max_ttl, 0.01);
        let seconds = |time: Duration| time.as_millis().div_ceil(1_000);
        let seconds = |time| u64::try_from(seconds(time)).unwrap_or(u64::MAX);
        let whole = max_ttl.subsec_millis() == 0;
        let number = if whole {
            max_ttl.as_secs().into()
        } else {
            max_ttl.as_millis()
        };
        let unit = if whole { "s" } else { "ms" };
        Self {
            max_ttl: format!("{number}{unit}"),
            words: format!("{number} {unit}"),
            quarantine: seconds(policy.length()),
            absence: seconds(policy.absence() + Duration::from_millis(2)),
        }
    }
}

fn indented(text: &str) -> String {
    let line = |line: &str| {
        if line.is_empty() {
            String::new()
        } else {
            format!("    {line}")
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

// `docker` in this crate is a link to the folder in the repository, so that a package of the crate has the files too.
const COMPOSE: &str = include_str!("../../docker/compose.yaml");
const DELAYED_COMPOSE: &str = include_str!("../../docker/compose.delayed.yaml");
const DELAYED_RESTART: &str = include_str!("../../docker/delayed-restart.sh");
const REDIS: &str = include_str!("../../docker/redis.conf");
const ACCESS: &str = include_str!("../../docker/access.conf");
const VOTES: &str = include_str!("../../docker/votes.sh");
const NODE: &str = include_str!("../../docker/systemd/redlock-node.service");
const ENVIRONMENT: &str = include_str!("../../docker/systemd/environment");
const WATCH: &str = include_str!("../../docker/systemd/redlock-watch.service");
const DELAYED: &str = include_str!("../../docker/systemd/delayed.conf");
const PROMETHEUS: &str = include_str!("../../docker/prometheus/prometheus.yml");
const ALERTS: &str = include_str!("../../docker/prometheus/alerts.yml");
const DATASOURCES: &str = include_str!("../../docker/grafana/datasources.yaml");
const DASHBOARDS: &str = include_str!("../../docker/grafana/dashboards.yaml");
const DASHBOARD: &str = include_str!("../../docker/grafana/redlock.json");
const KUBERNETES: &str = include_str!("kubernetes.yaml");
