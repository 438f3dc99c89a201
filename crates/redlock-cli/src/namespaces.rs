//! The namespaces of the nodes, by the marks that their clients leave there, and the policy of a namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::join_all;
use redlock_core::deadpool_redis::redis::{RedisError, cmd, from_redis_value};
use redlock_proto::Quarantine;

use crate::{
    connection::{ConnectionArgs, NodeSettings},
    exit::CommandError,
    output::printable,
    probe::{self, NodeProbe, ProbedNode, words},
};

impl ConnectionArgs {
    /// Reads all settings, and asks the nodes for a `max_ttl` that is not given.
    ///
    /// A command with another `max_ttl` than the clients would get no vote, and would leave it at a node that restarts.
    pub(crate) async fn settings(&self) -> Result<NodeSettings, CommandError> {
        let mut settings = self.given()?;
        if settings.config.max_ttl.is_none() {
            settings.config.max_ttl = remembered_max_ttl(&settings).await;
            let ttl = settings.ttl().min(settings.max_ttl());
            settings.config.ttl = Some(ttl);
        }
        Ok(settings)
    }
}

/// Returns the `max_ttl` of the namespace that a majority of the nodes remembers.
async fn remembered_max_ttl(settings: &NodeSettings) -> Option<Duration> {
    let places = probe::connect(settings).await;
    let marks = places.into_iter().map(async |place| {
        let mark = settings.mark_of(&place.keys);
        let answer = place.probe.ok()?.ask(cmd("MGET").arg(&mark)).await.ok()?;
        let [mark]: [Option<String>; 1] = from_redis_value(answer).ok()?;
        // What it is, the run, the data, and then the policy.
        Quarantine::max_ttl_of(mark?.split(' ').nth(3)?)
    });
    let all: Vec<Duration> = join_all(marks).await.into_iter().flatten().collect();
    let count = |max_ttl: &Duration| all.iter().filter(|other| *other == max_ttl).count();
    let most = all.iter().max_by_key(|max_ttl| count(max_ttl))?;
    (count(most) >= settings.majority()).then_some(*most)
}

/// What a node remembers of a namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceMark {
    /// Why the node does not vote in it; `None` if it votes.
    pub(crate) objection: Option<String>,
    /// The longest lease of its clients, if that can be read.
    max_ttl: Option<Duration>,
}

/// Returns all namespaces of which a node has a mark, by their names.
///
/// # Errors
///
/// The node cannot be asked, or its user may not scan, which the words of the error say of this verb.
pub(crate) async fn on_node(
    place: &ProbedNode,
    verb: &str,
) -> Result<BTreeMap<String, NamespaceMark>, String> {
    let mut probe = place.probe.clone()?;
    let info = probe.info().await.map_err(|error| words(&error))?;
    let run = info.text("run_id");
    let mut marks = BTreeMap::new();
    for key in probe.keys(format!("{{*{BEHIND}"), verb, usize::MAX).await? {
        let Some(namespace) = namespace(&key) else {
            continue;
        };
        if let Some(marked) = read(&mut probe, &key, run).await {
            marks.insert(namespace.to_owned(), marked);
        }
    }
    Ok(marks)
}

/// Returns what a mark says of a run of the server; `None` if the key has gone, or is no mark.
async fn read(probe: &mut NodeProbe, key: &str, run: &str) -> Option<NamespaceMark> {
    let answer = probe.ask(cmd("MGET").arg(key)).await;
    let value: RedisError = match answer.and_then(|answer| Ok(from_redis_value(answer)?)) {
        Ok::<[Option<String>; 1], _>([mark]) => return of_mark(&mark?, run),
        Err(error) => error,
    };
    Some(NamespaceMark {
        objection: Some(format!("its mark cannot be read: {}", words(&value))),
        max_ttl: None,
    })
}

fn of_mark(mark: &str, run: &str) -> Option<NamespaceMark> {
    // What it is, the run, the data, and then the policy.
    let mut parts = mark.split(' ');
    let (state, of_run) = (parts.next()?, parts.next()?);
    let objection = match state {
        "voting" if of_run == run => None,
        "quarantined" if of_run == run => Some("it is in quarantine".to_owned()),
        "voting" | "quarantined" => Some(UNSEEN.to_owned()),
        _ => return None,
    };
    Some(NamespaceMark {
        objection,
        max_ttl: parts.nth(1).and_then(Quarantine::max_ttl_of),
    })
}

/// Returns the namespace whose mark a key is, if it may be one.
fn namespace(key: &str) -> Option<&str> {
    let tag = key.strip_prefix('{')?.strip_suffix(BEHIND)?;
    let namespace = match tag.split_once(':') {
        // One vote of a Cluster has its own tag.
        Some((namespace, vote)) if vote.starts_with(|c: char| c.is_ascii_digit()) => namespace,
        _ => tag,
    };
    (!namespace.contains(['{', '}'])).then_some(namespace)
}

/// Returns the key of a namespace's mark.
pub(crate) fn mark_of(namespace: &str) -> String {
    format!("{{{namespace}{BEHIND}")
}

/// The other namespaces of the nodes, which a restart of a node concerns, too.
#[derive(Debug, Default)]
pub(crate) struct OtherNamespaces {
    /// By name, the nodes that had its mark, and the longest lease of its clients.
    namespaces: BTreeMap<String, (BTreeSet<usize>, Duration)>,
    /// Why the namespaces of a node are not known.
    pub(crate) unknown: Option<String>,
}

impl OtherNamespaces {
    /// Looks at all nodes at once.
    pub(crate) async fn find(settings: &NodeSettings, verb: &str, ignored: &[String]) -> Self {
        let mut others = Self::default();
        let mark = settings.mark();
        let own = namespace(&mark).unwrap_or_default();
        let places = probe::connect(settings).await;
        let all = join_all(places.iter().map(|place| on_node(place, verb))).await;
        for (node, marks) in all.into_iter().enumerate() {
            let marks = match marks {
                Ok(marks) => marks,
                // Another place reports a node that cannot be reached.
                Err(why) if places[node].probe.is_ok() => {
                    let name = &places[node].name;
                    others
                        .unknown
                        .get_or_insert_with(|| format!("{name}: {why}"));
                    continue;
                }
                Err(_) => continue,
            };
            for (namespace, marked) in marks {
                if namespace == own || ignored.contains(&namespace) {
                    continue;
                }
                let (nodes, max_ttl) = others.namespaces.entry(namespace).or_default();
                nodes.insert(node);
                *max_ttl = marked.max_ttl.unwrap_or_default().max(*max_ttl);
            }
        }
        others
    }

    /// Returns their names, with commas between them; `None` if there are none.
    pub(crate) fn names(&self) -> Option<String> {
        let names: Vec<_> = self.namespaces.keys().map(|name| printable(name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Returns the longest quarantine of them all.
    pub(crate) fn quarantine(&self) -> Duration {
        let all = self.namespaces.values();
        let longest = all.map(|(_, max_ttl)| *max_ttl).max().unwrap_or_default();
        // With the greatest error of a clock's rate that is usual.
        Quarantine::new(longest, 0.01).length()
    }

    /// Returns why a node must not be restarted for their sake; `None` if the other nodes are a majority in each.
    pub(crate) async fn are_at_risk(&self, node: usize, settings: &NodeSettings) -> Option<String> {
        let concerned = self.namespaces.iter();
        let concerned: Vec<_> = concerned
            .filter(|(_, (nodes, _))| nodes.contains(&node))
            .collect();
        if concerned.is_empty() {
            return None;
        }
        let places = probe::connect(settings).await;
        let all = join_all(places.iter().map(|place| on_node(place, ""))).await;
        concerned.into_iter().find_map(|(namespace, (nodes, _))| {
            let votes = |other: &&usize| {
                let marks = all[**other].as_ref().ok();
                let marked = marks.and_then(|marks| marks.get(namespace));
                marked.is_some_and(|marked| marked.objection.is_none())
            };
            let count = nodes.iter().filter(|other| **other != node).filter(votes).count();
            // A namespace may have other nodes beside these: then none of these may be missing.
            let needed = (nodes.len() / 2 + 1).min(nodes.len() - 1);
            (count < needed).then(|| {
                let (namespace, nodes) = (printable(namespace), nodes.len());
                format!(
                    "in the namespace {namespace}, {count} of its {nodes} nodes vote without it, and {needed} are needed; \
                     {ADVICE}"
                )
            })
        })
    }

    /// Returns why a node does not vote in a namespace of which it had the mark; `None` if it votes in all of them.
    pub(crate) async fn missing(&self, node: usize, settings: &NodeSettings) -> Option<String> {
        let concerned = self.namespaces.iter();
        let mut concerned = concerned
            .filter(|(_, (nodes, _))| nodes.contains(&node))
            .peekable();
        concerned.peek()?;
        let place = probe::connect_to(settings, node).await?;
        let marks = match on_node(&place, "").await {
            Ok(marks) => marks,
            Err(why) => return Some(why),
        };
        concerned.find_map(|(namespace, _)| {
            let why = match marks.get(namespace) {
                Some(marked) => marked.objection.clone()?,
                None => UNSEEN.to_owned(),
            };
            let namespace = printable(namespace);
            Some(format!(
                "in the namespace {namespace}, it does not vote: {why}"
            ))
        })
    }
}

/// What to do about a namespace in which nodes do not vote.
pub(crate) const ADVICE: &str = "keep a client of that namespace connected, such as redlock watch --namespace NAME, or leave it \
     out with --ignore NAME if no client uses it";

const UNSEEN: &str = "no client of the namespace has looked at it since it was started";

/// What stands in the name of a mark behind the namespace.
const BEHIND: &str = "}:mark";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_whether_this_run_votes() {
        let says = |mark: &str| of_mark(mark, "run").map(|marked| marked.objection);
        assert_eq!(says("voting run data 30000ms,10000ppm,v2"), Some(None));
        assert_eq!(says("voting old data 30000ms"), Some(Some(UNSEEN.into())));
        let waits = says("quarantined run data 30000ms 1 2 3").flatten();
        assert!(waits.is_some_and(|why| why.contains("quarantine")));
        assert!(says("a value").is_none() && says("").is_none());
        let marked = of_mark("voting run data 2000ms,10000ppm,v2", "run").unwrap();
        assert_eq!(marked.max_ttl, Some(Duration::from_secs(2)));
        assert_eq!(namespace("{billing}:mark"), Some("billing"));
        assert_eq!(namespace("{billing}:lock:a}:mark"), None);
    }
}
