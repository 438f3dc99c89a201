//! The part of a snapshot that a viewer sees: what matches the filter, as much as fits.

use std::{
    collections::hash_map::DefaultHasher,
    fmt,
    hash::{Hash, Hasher},
};

use serde_json::{Value, json};

use crate::{
    Access,
    page::{self, PageView},
    snapshot::{JobSnapshot, KeyKind, KeySnapshot, Snapshot},
};

/// A filter of keys and jobs, and what the viewer may do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Filter {
    /// In lower case.
    query: String,
    kind: Option<KeyKind>,
    access: Access,
}

/// The part of a snapshot that a viewer sees.
pub(crate) struct Page {
    pub(crate) snapshot: Snapshot,
    pub(crate) view: PageView,
    /// The sections of the page, in their order.
    pub(crate) sections: Vec<Section>,
    pub(crate) etag: String,
}

/// A section of the page as HTML.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) html: String,
    /// The same for two sections between which only times have passed.
    pub(crate) state: u64,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    ///
    /// There is no such kind, or the text is too long, in words for the viewer.
    pub(crate) fn new(query: &str, kind: &str, access: Access) -> Result<Self, String> {
        if query.len() > LONGEST_QUERY {
            return Err(format!("q is too long: {LONGEST_QUERY} bytes at most"));
        }
        let kind = match kind {
            "" => None,
            "exclusive" => Some(KeyKind::Exclusive),
            "shared" => Some(KeyKind::Shared),
            "slot" => Some(KeyKind::Slot),
            "job" => Some(KeyKind::Job),
            _ => return Err("kind is none of these: exclusive, shared, slot, job".to_owned()),
        };
        Ok(Self {
            query: query.to_lowercase(),
            kind,
            access,
        })
    }

    fn has(&self, text: &str) -> bool {
        self.query.is_empty() || text.to_lowercase().contains(&self.query)
    }

    fn has_key(&self, key: &KeySnapshot) -> bool {
        let callers = key.line.iter().flat_map(|line| &line.clients);
        let mut labels = callers
            .filter_map(|caller| caller.label.as_ref())
            .chain(&key.holder);
        self.kind.is_none_or(|kind| kind == key.kind)
            && (self.has(&key.key) || labels.any(|label| self.has(label)))
    }

    fn has_job(&self, job: &JobSnapshot) -> bool {
        self.has(&job.job) || self.has(&job.state)
    }
}

impl Page {
    pub(crate) fn of(all: &Snapshot, filter: &Filter) -> Self {
        let keys: Vec<_> = all.keys.iter().filter(|key| filter.has_key(key)).collect();
        let jobs: Vec<_> = all.jobs.iter().filter(|job| filter.has_job(job)).collect();
        let mut snapshot = Snapshot {
            namespace: all.namespace.clone(),
            verdict: all.verdict.clone(),
            nodes: all.nodes.clone(),
            margin: all.margin.clone(),
            keys: keys
                .iter()
                .take(MOST_KEYS)
                .map(|key| (*key).clone())
                .collect(),
            keys_total: keys.len(),
            jobs: jobs
                .iter()
                .take(MOST_JOBS)
                .map(|job| (*job).clone())
                .collect(),
            jobs_total: jobs.len(),
            jobs_unknown: all.jobs_unknown.clone(),
            elections: all.elections.clone(),
            findings: all.findings.iter().take(MOST_FINDINGS).cloned().collect(),
            actions: all.actions.clone(),
            actions_unknown: all.actions_unknown.clone(),
            ..*all
        };
        let view = PageView {
            access: filter.access,
            query: filter.query.clone(),
            kind: filter.kind,
        };
        let sections = fitting(&mut snapshot, &view);
        let mut hasher = DefaultHasher::new();
        sections
            .iter()
            .for_each(|section| section.state.hash(&mut hasher));
        filter.query.hash(&mut hasher);
        filter.kind.hash(&mut hasher);
        let etag = format!("W/\"{:016x}\"", hasher.finish());
        Self {
            snapshot,
            view,
            sections,
            etag,
        }
    }
}

/// Returns the sections of the page, after rows were taken out of those that are too long.
///
/// Names may have any characters, and some take six bytes each as HTML: so the length of what was made decides.
fn fitting(snapshot: &mut Snapshot, view: &PageView) -> Vec<Section> {
    loop {
        let sections =
            page::sections(snapshot, view).map(|(name, html)| (name, html.into_string()));
        let mut fits = true;
        for (name, html) in &sections {
            fits &= match *name {
                "keys" => is_short(&mut snapshot.keys, html, LONGEST_KEYS),
                "jobs" => is_short(&mut snapshot.jobs, html, LONGEST_JOBS),
                "actions" => is_short(&mut snapshot.actions, html, LONGEST_OTHER),
                "elections" => is_short(&mut snapshot.elections, html, LONGEST_OTHER),
                "findings" => is_short(&mut snapshot.findings, html, LONGEST_OTHER),
                _ => true,
            };
        }
        if fits {
            let sections = sections.into_iter().map(|(name, html)| Section {
                name,
                html,
                state: state(name, snapshot),
            });
            return sections.collect();
        }
    }
}

/// Returns whether a section is short enough, and takes rows out of it if it is not.
fn is_short<T>(rows: &mut Vec<T>, html: &str, most: usize) -> bool {
    let count = rows.len();
    if html.len() <= most || count == 0 {
        return true;
    }
    // A bit fewer than would fit if all rows were as long.
    rows.truncate((count * most / html.len()).min(count - 1));
    false
}

/// Returns a number for each section that stays the same while only times pass.
fn state(name: &str, snapshot: &Snapshot) -> u64 {
    let Snapshot { at_ms, .. } = *snapshot;
    let is_off = snapshot.ahead_ms.is_some_and(|ahead| ahead.abs() >= 100.0);
    let verdict = &snapshot.verdict;
    let mut value = match name {
        "verdict" => json!([verdict.state, verdict.votes, verdict.nodes, is_off]),
        "findings" => json!([snapshot.findings, snapshot.findings_at_ms]),
        // What moves a little is shown again every ten seconds, and the end of a lease every five.
        "nodes" => json!([snapshot.nodes, snapshot.margin, at_ms / 10_000]),
        "keys" if snapshot.keys.is_empty() => json!(snapshot.keys_total),
        "keys" => json!([snapshot.keys, snapshot.keys_total, at_ms / 5_000]),
        "jobs" => json!([snapshot.jobs, snapshot.jobs_total, snapshot.jobs_unknown]),
        "elections" => json!([snapshot.elections, at_ms / 5_000]),
        _ => json!([snapshot.actions, snapshot.actions_unknown]),
    };
    still(&mut value);
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Takes the values out that move with the time, and the words that have them; what is missing stays missing.
fn still(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(still),
        Value::Object(fields) => {
            for (name, value) in fields {
                match MOVING.contains(&&**name) {
                    true if value.is_null() => {}
                    true => *value = Value::Bool(true),
                    false => still(value),
                }
            }
        }
        _ => {}
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("etag", &self.etag)
            .finish_non_exhaustive()
    }
}

/// The fields of a snapshot that move with the time.
const MOVING: [&str; 12] = [
    "clock_ahead_ms",
    "connections",
    "locked_ms",
    "longest_ms",
    "memory_bytes",
    "ready_in_ms",
    "remaining_ms",
    "round_trip_ms",
    "round_trips",
    "up_ms",
    "waits_ms",
    "why",
];

/// The most keys on a page.
const MOST_KEYS: usize = 200;
/// The most jobs on a page.
const MOST_JOBS: usize = 100;
/// The most findings on a page.
const MOST_FINDINGS: usize = 50;
/// The longest text to search for, in bytes: the longest name of a key.
const LONGEST_QUERY: usize = 512;

/// The longest sections, in bytes.
const LONGEST_KEYS: usize = 64 * 1_024;
const LONGEST_JOBS: usize = 32 * 1_024;
const LONGEST_OTHER: usize = 8 * 1_024;
