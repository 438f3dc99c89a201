//! The page as the server makes it, complete without a script.
//!
//! The script replaces sections of it with newer ones that the server has made in the same way, so that there is one
//! description of what a section looks like, and one place where texts are escaped: [`html`].

mod dialogs;
mod html;
mod job;
mod jobs;
mod keys;
mod nodes;
mod others;
mod picture;
mod runs;
mod time;

use self::html::{Attributes, Html};
use crate::{
    Access, Snapshot,
    snapshot::{JobSnapshot, KeyDetail, KeyKind},
};

/// What a page shows of a snapshot, and what its reader may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageView {
    /// What the reader may do: buttons are on the page with [`Access::Operate`] only, and the server decides again.
    pub(crate) access: Access,
    /// The text by which keys and jobs are filtered; empty for all.
    pub(crate) query: String,
    /// The kind of the keys that are shown; `None` for all.
    pub(crate) kind: Option<KeyKind>,
}

/// The end of an action, or the reason why it was not done.
#[derive(Clone, Debug)]
pub(crate) struct ActionOutcome {
    /// Whether it was done.
    pub(crate) done: bool,
    /// What was done or why not, in words.
    pub(crate) message: String,
}

/// Returns the page with everything.
pub(crate) fn render(snapshot: &Snapshot, view: &PageView) -> String {
    let verdict = &snapshot.verdict;
    let mut title = format!("{} of {} vote", verdict.votes, verdict.nodes);
    // The default namespace is called as the product is.
    if snapshot.namespace != "redlock" {
        title = format!("{title} · {}", snapshot.namespace);
    }
    let frame = Frame {
        title: &title,
        namespace: Some(&snapshot.namespace),
        at_ms: snapshot.at_ms,
        root: "",
        is_live: true,
    };
    frame.around(view, |html| {
        for (_, section) in sections(snapshot, view) {
            html.append(&section);
        }
    })
}

/// Returns the sections of the page with everything, each with its `id`, in their order.
pub(crate) fn sections(snapshot: &Snapshot, view: &PageView) -> [(&'static str, Html); 7] {
    let section = |name, add: &dyn Fn(&mut Html)| {
        let mut html = Html::default();
        add(&mut html);
        (name, html)
    };
    [
        section("verdict", &|html| nodes::verdict(html, &snapshot.verdict)),
        section("findings", &|html| nodes::findings(html, snapshot)),
        section("nodes", &|html| nodes::nodes(html, snapshot)),
        section("keys", &|html| keys::keys(html, snapshot, view)),
        section("jobs", &|html| jobs::jobs(html, snapshot, view)),
        section("elections", &|html| others::elections(html, snapshot)),
        section("actions", &|html| others::actions(html, snapshot)),
    ]
}

/// Returns the page of one key.
pub(crate) fn render_key(key: &KeyDetail, view: &PageView) -> String {
    let frame = Frame {
        title: &key.name,
        namespace: None,
        at_ms: key.at_ms,
        root: "",
        is_live: true,
    };
    frame.around(view, |html| keys::page(html, key, view))
}

/// Returns the page of one job, as it was at a moment in milliseconds since 1970.
pub(crate) fn render_job(job: &JobSnapshot, at_ms: u64, view: &PageView) -> String {
    let frame = Frame {
        title: &job.job,
        namespace: None,
        at_ms,
        root: "",
        is_live: true,
    };
    frame.around(view, |html| job::page(html, job, view, at_ms))
}

/// Returns the page that answers a form, which is one level below the others.
pub(crate) fn render_outcome(outcome: &ActionOutcome, view: &PageView) -> String {
    let title = if outcome.done { "Done" } else { "Not done" };
    let frame = Frame {
        title,
        namespace: None,
        at_ms: 0,
        root: "../",
        is_live: false,
    };
    frame.around(view, |html| {
        let class = if outcome.done { "ok" } else { "no-quorum" };
        verdict(html, class, title, |html| {
            html.leaf("p", &[], &outcome.message);
        });
        html.leaf("a", &[("href", &"../overview")], "Back to the page");
    })
}

/// What is around the sections of every page.
struct Frame<'a> {
    title: &'a str,
    namespace: Option<&'a str>,
    at_ms: u64,
    /// Where the page with everything is, from this one.
    root: &'static str,
    /// Whether it is shown again and again, with what is newer.
    is_live: bool,
}

impl Frame<'_> {
    fn around(&self, view: &PageView, main: impl FnOnce(&mut Html)) -> String {
        let mut html = Html::default();
        html.begin("!doctype html", &[]);
        html.element("html", &[("lang", &"en")], |html| {
            html.element("head", &[], |html| self.head(html));
            html.element("body", &[("data-at", &self.at_ms)], |html| {
                self.header(html, view);
                html.element("main", &[("id", &"main")], main);
                if view.access == Access::Operate && self.is_live {
                    dialogs::dialogs(html);
                }
            });
        });
        html.into_string()
    }

    fn head(&self, html: &mut Html) {
        let root = self.root;
        html.begin("meta", &[("charset", &"utf-8")]);
        let sized: Attributes<'_> = &[
            ("name", &"viewport"),
            ("content", &"width=device-width, initial-scale=1"),
        ];
        html.begin("meta", sized);
        html.begin(
            "meta",
            &[("name", &"color-scheme"), ("content", &"light dark")],
        );
        html.leaf("title", &[], format_args!("{} · redlock", self.title));
        // Without it, a browser asks for an icon at the root of the host, which is not ours.
        html.begin("link", &[("rel", &"icon"), ("href", &"data:,")]);
        let style = format!("{root}console.css");
        html.begin("link", &[("rel", &"stylesheet"), ("href", &style)]);
        if self.is_live {
            html.leaf("script", &[("type", &"module"), ("src", &"console.js")], "");
            html.element("noscript", &[], |html| {
                html.begin("meta", &[("http-equiv", &"refresh"), ("content", &"5")]);
            });
        }
    }

    fn header(&self, html: &mut Html, view: &PageView) {
        html.leaf(
            "a",
            &[("class", &"skip"), ("href", &"#main")],
            "To the content",
        );
        let home = format!("{}overview", self.root);
        html.element("header", &[], |html| {
            html.leaf("a", &[("class", &"brand"), ("href", &home)], "redlock");
            if let Some(namespace) = self.namespace {
                html.element("span", &[("class", &"namespace")], |html| {
                    html.text("namespace ");
                    html.leaf("b", &[], namespace);
                });
            }
            html.element("span", &[("id", &"looked")], |html| {
                if self.is_live {
                    html.text("as of ");
                    html.moment(time::as_ms(self.at_ms), time::Shown::At, self.at_ms);
                }
            });
            html.leaf("span", &[("id", &"live"), ("role", &"status")], "");
            search(html, &home, view);
        });
        let page = match self.namespace {
            Some(_) => "",
            None => &*home,
        };
        html.element("nav", &[("aria-label", &"Sections")], |html| {
            for (id, title) in [
                ("findings", "Findings"),
                ("nodes", "Nodes"),
                ("keys", "Keys"),
                ("jobs", "Jobs"),
                ("elections", "Elections"),
                ("actions", "Actions"),
            ] {
                html.leaf("a", &[("href", &format_args!("{page}#{id}"))], title);
            }
        });
    }
}

fn search(html: &mut Html, home: &str, view: &PageView) {
    let form: Attributes<'_> = &[
        ("id", &"search"),
        ("role", &"search"),
        ("method", &"get"),
        ("action", &home),
    ];
    html.element("form", form, |html| {
        let input: Attributes<'_> = &[
            ("type", &"search"),
            ("name", &"q"),
            ("value", &view.query),
            ("placeholder", &"Search keys and jobs ( / )"),
            ("aria-label", &"Search keys and jobs"),
        ];
        html.begin("input", input);
        html.element(
            "select",
            &[("name", &"kind"), ("aria-label", &"Kind of keys")],
            |html| {
                option(html, "", "all kinds", view.kind.is_none());
                for kind in [
                    KeyKind::Exclusive,
                    KeyKind::Shared,
                    KeyKind::Slot,
                    KeyKind::Job,
                ] {
                    let name = keys::called(kind);
                    option(html, name, name, view.kind == Some(kind));
                }
            },
        );
        html.leaf("button", &[], "Search");
    });
}

fn option(html: &mut Html, value: &str, words: &str, is_chosen: bool) {
    if is_chosen {
        html.leaf("option", &[("value", &value), ("selected", &"")], words);
    } else {
        html.leaf("option", &[("value", &value)], words);
    }
}

/// Adds what a page says first, in large letters, with what follows from it.
fn verdict(html: &mut Html, class: &str, words: &str, inner: impl FnOnce(&mut Html)) {
    html.element(
        "section",
        &[("id", &"verdict"), ("class", &class)],
        |html| {
            html.leaf("h1", &[("aria-live", &"polite")], words);
            inner(html);
        },
    );
}

/// Adds a section with a title that is a link to it.
fn section(html: &mut Html, id: &'static str, title: &str, inner: impl FnOnce(&mut Html)) {
    html.element("section", &[("id", &id)], |html| {
        html.element("h2", &[], |html| linked(html, id, title));
        inner(html);
    });
}

/// Adds the title of a part of the page as a link to it.
fn linked(html: &mut Html, id: &str, title: &str) {
    html.leaf("a", &[("href", &format_args!("#{id}"))], title);
}

/// Adds words in the place of what is not there.
fn dim(html: &mut Html, words: &str) {
    html.leaf("p", &[("class", &"dim")], words);
}

/// Adds a table with the names of its columns.
fn table(html: &mut Html, names: &[&str], rows: impl FnOnce(&mut Html)) {
    html.element("table", &[], |html| {
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| {
                for name in names {
                    html.leaf("th", &[("scope", &"col")], name);
                }
            });
        });
        html.element("tbody", &[], rows);
    });
}

/// Adds a table with the names of its columns, and one for buttons if the reader may act.
fn table_to_act(html: &mut Html, view: &PageView, names: &[&str], rows: impl FnOnce(&mut Html)) {
    let buttons: &[&str] = match view.access {
        Access::Operate => &[""],
        Access::Read | Access::None => &[],
    };
    table(html, &[names, buttons].concat(), rows);
}

/// Says how many of all are shown, and how to find the others.
fn count(html: &mut Html, shown: usize, total: usize) {
    let words = match shown < total {
        true => format!(" {shown} of {total}; search for the others"),
        false => format!(" {total}"),
    };
    html.leaf("small", &[], words);
}

/// The style sheet of all pages.
pub(crate) const CSS: &str = include_str!("console.css");

/// The script of all pages that are shown again and again.
pub(crate) const SCRIPT: &str = include_str!("console.js");

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        serde_json::from_str(include_str!("../../tests/snapshot.json")).unwrap()
    }

    #[test]
    fn the_page_is_complete_without_a_script() {
        let mut snapshot = snapshot();
        let page = render(&snapshot, &PageView::default());
        for words in [
            "<title>2 of 3 vote · billing · redlock<",
            "<h1 aria-live=\"polite\">2 of 3 nodes vote; 2 are needed.",
            "redlock bless",
            "order@web-8:977",
            "href=\"key?name=order:7\"",
            "href=\"job?name=billing/close-day\"",
            "at 02:00:00 in Europe/Berlin",
            "by alice until",
            "pod-3",
            "the ledger moves to another server",
            "http-equiv=\"refresh\"",
        ] {
            assert!(page.contains(words), "{words} is not in {page}");
        }
        assert!(!page.contains("<img"), "{page}");
        snapshot.namespace = "redlock".to_owned();
        let page = render(&snapshot, &PageView::default());
        assert!(page.contains("<title>2 of 3 vote · redlock<"), "{page}");
    }

    #[test]
    fn only_an_operator_sees_buttons() {
        let of = |access| {
            let view = PageView {
                access,
                ..PageView::default()
            };
            render(&snapshot(), &view)
        };
        assert!(!of(Access::Read).contains("data-do") && !of(Access::Read).contains("<dialog"));
        assert!(of(Access::Operate).contains("data-do=\"resume\""));
        assert!(of(Access::Operate).contains("data-do=\"release\""));
    }

    #[test]
    fn a_job_shows_the_error_of_its_run() {
        let page = render_job(&snapshot().jobs[0], 1_795_971_600_000, &PageView::default());
        assert!(page.contains("the ledger does not answer"), "{page}");
        assert!(
            page.contains("href=\"#run-1795914000000-1\"")
                && page.contains("id=\"run-1795914000000-1\""),
            "{page}"
        );
    }

    #[test]
    fn no_page_has_a_style_or_a_script_of_its_own() {
        let operates = PageView {
            access: Access::Operate,
            ..PageView::default()
        };
        let snapshot = snapshot();
        let job = render_job(&snapshot.jobs[0], snapshot.at_ms, &operates);
        for page in [render(&snapshot, &operates), job] {
            assert!(
                !page.contains(" style=") && !page.contains("<style"),
                "{page}"
            );
            assert!(page.matches("<script").count() == 1, "{page}");
        }
    }
}
