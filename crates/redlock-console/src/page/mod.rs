//! The page as the server makes it, complete without a script.

mod escape;

/// HTML.
#[derive(Debug)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Returns the sections.
pub(crate) fn sections(snapshot: &Snapshot, _view: &View) -> [(&'static str, Html); 1] {
    [("verdict", Html(snapshot.verdict.sentence.clone()))]
}

/// Returns the page of a job.
pub(crate) fn render_job(job: &crate::snapshot::JobSnapshot, _at: u64, _view: &View) -> String {
    framed(&job.job, "")
}

use std::fmt::Write;

pub(crate) use self::escape::Text;
use crate::{
    Access, Snapshot,
    snapshot::{KeyDetail, KeyKind},
};

/// What a page shows of a snapshot, and to whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// What the reader may do: buttons are on the page with [`Access::Operate`] only, and the server decides again.
    pub(crate) access: Access,
    /// The text by which keys and jobs are filtered; empty for all.
    pub(crate) query: String,
    /// The kind of the keys that are shown; `None` for all.
    pub(crate) kind: Option<KeyKind>,
}

/// The end of an action, or the reason why it was not done.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Whether it was done.
    pub(crate) done: bool,
    /// What was done or why not, in words.
    pub(crate) message: String,
}

/// Returns the page with everything.
pub(crate) fn render(snapshot: &Snapshot, view: &View) -> String {
    let mut body = format!("<h1>{}</h1>", Text(&snapshot.verdict.sentence));
    if let Some(advice) = &snapshot.verdict.advice {
        // Writing to a text cannot fail.
        let _ = write!(body, "<p>{}</p>", Text(advice));
    }
    let query = Text(&view.query);
    let _ = write!(body, "<form><input name=q value=\"{query}\"></form><table>");
    for key in &snapshot.keys {
        let _ = write!(
            body,
            "<tr><td>{}</td><td>{}</td></tr>",
            Text(&key.key),
            Text(&key.why)
        );
    }
    body.push_str("</table>");
    framed(&snapshot.namespace, &body)
}

/// Returns the page of one key.
pub(crate) fn render_key(key: &KeyDetail, _view: &View) -> String {
    let body = format!("<h1>{}</h1><p>{}</p>", Text(&key.name), Text(&key.sentence));
    framed(&key.name, &body)
}

/// Returns the page that answers a form.
pub(crate) fn render_outcome(outcome: &Outcome, _view: &View) -> String {
    let body = format!(
        "<p>{}</p><p><a href=\"../\">Back</a></p>",
        Text(&outcome.message)
    );
    framed("redlock", &body)
}

fn framed(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\"><title>{}</title>{body}",
        Text(title)
    )
}

/// The style sheet of all pages.
pub(crate) const CSS: &str = include_str!("console.css");

/// The script of the page with everything.
pub(crate) const SCRIPT: &str = include_str!("console.js");
