//! Names that want to be more than names, and addresses that are not the root.

use std::{future::pending, sync::mpsc};

use redlock_core::{AcquireOptions, LockGuard, Wait};
use redlock_cron::{
    Action, BoxError, Run, SingletonJob, SingletonScheduler, log_action, pause_with,
};
use redlock_tests::{Browser, Look, Nodes, Tab};
use tokio::task::JoinSet;

use crate::kit::{Console, MAX_TTL, SECOND, named, voting};

/// Marked up, it would ask for an image and run a script.
///
/// A replica's name has no space.
const HOSTILE: &str = "<img/src=x/onerror=\"document.title='hit'\">`&lt;";

fn assert_is_calm(tab: &Tab, console: &Console) {
    assert_eq!(tab.value("document.querySelectorAll('img').length"), 0);
    assert_eq!(tab.complaints(), [""; 0]);
    assert_ne!(tab.value("document.title"), "hit");
    for request in tab.requests() {
        let is_known =
            request.starts_with(console.url.trim_end_matches('/')) || request.starts_with("data:,");
        assert!(is_known && !request.ends_with("/x"), "{request}");
    }
}

/// A name in every field: that of a key, its holder, a caller, a candidate, a job, its replica, its error, and an action.
struct Named {
    jobs: SingletonScheduler,
    _leases: [LockGuard; 2],
    _waiting: JoinSet<()>,
}

impl Named {
    async fn everywhere(nodes: &Nodes, name: &'static str) -> Self {
        let client = named(nodes, name).await;
        let leases = [
            client.acquire(name).await.unwrap(),
            client.acquire("importer").await.unwrap(),
        ];
        let mut waiting = JoinSet::new();
        for key in [name, "importer"] {
            let other = named(nodes, name).await;
            let patient = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
            waiting.spawn(async move { drop(other.acquire_with(key, patient).await) });
        }
        let fails = SingletonJob::every(name, SECOND, move |_: Run| async move {
            Err::<(), BoxError>(name.into())
        });
        let builder = SingletonScheduler::standalone(client.clone()).namespace("billing");
        let jobs = builder.replica(name).build().unwrap();
        jobs.add(fails.remember_errors()).await.unwrap();
        jobs.start().await.unwrap();
        let action = Action::by(name).reason(name);
        log_action(&client, "pause", name, &action).await.unwrap();
        Self {
            jobs,
            _leases: leases,
            _waiting: waiting,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_in_every_field_are_text() {
    let nodes = voting(3).await;
    let all = Named::everywhere(&nodes, HOSTILE).await;

    let console = Console::start(&nodes, &["--operate", "--election", "importer"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    for section in ["keys", "jobs", "elections", "actions"] {
        tab.wait_for(&format!(
            "document.querySelector('#{section}').innerText.includes('<img/src=x')"
        ));
    }
    tab.click("#keys [data-do=release]");
    tab.wait_for("document.querySelector('dialog .subject').textContent.includes('<img/src=x')");
    tab.press("Escape");
    assert_is_calm(&tab, &console);
    for link in ["#keys th a", "#jobs th a"] {
        tab.open(&console.url);
        tab.click(link);
        tab.wait_for("location.search.startsWith('?name=')");
        tab.wait_for("document.querySelector('h1').textContent.includes('<img/src=x')");
        tab.wait_for("document.querySelector('#live').textContent == 'live'");
        assert_is_calm(&tab, &console);
    }
    tab.open(&format!(
        "{}?q=%22%3E%3Cimg%20src%3Dx%20onerror%3Dx%3E",
        console.url
    ));
    tab.wait_for("document.querySelector('#search input').value.startsWith('\"><img')");
    assert_is_calm(&tab, &console);
    drop(all.jobs.shutdown(SECOND).await);
}

/// As long as a name of each kind may be, and without a place at which a line may end.
const LONG: &str = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";
const LONG_TOO: &str = "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_names_make_no_page_wider_than_a_narrow_screen() {
    let mut nodes = voting(3).await;
    let all = Named::everywhere(&nodes, LONG).await;
    let client = named(&nodes, "ops").await;
    let action = Action::by("m".repeat(100)).reason("m".repeat(200));
    let (begins, begun) = mpsc::channel();
    let runs = SingletonJob::every(LONG_TOO, SECOND, move |_: Run| {
        begins.send(()).unwrap();
        pending::<Result<(), BoxError>>()
    });
    all.jobs.add(runs).await.unwrap();
    begun.recv_timeout(60 * SECOND).expect("the job runs");
    for job in [LONG, LONG_TOO] {
        pause_with(&client, "billing", job, &action).await.unwrap();
    }
    let console = Console::start(&nodes, &["--operate", "--election", "importer"]);
    let browser = Browser::start();
    let tab = browser.tab();
    nodes.kill(2..3);
    for width in [360, 1_280] {
        tab.look(Look {
            width,
            height: 800,
            dark: false,
        });
        let fits = |page: &str| {
            let over = tab.value(WIDER);
            assert_eq!(over, serde_json::json!([]), "{page} at {width}");
            // A narrow screen would show more of a wide page, and all of it smaller.
            let shown = tab.value("Math.max(document.documentElement.scrollWidth, innerWidth)");
            assert_eq!(shown, width, "{page}");
        };
        tab.open(&console.url);
        for section in ["keys", "jobs", "elections", "actions"] {
            tab.wait_for(&format!(
                "document.querySelector('#{section}').innerText.includes('{LONG}')"
            ));
        }
        tab.wait_for("/paused, runs on m/.test(document.querySelector('#jobs').innerText)");
        tab.wait_for("document.querySelectorAll('#findings li').length > 0");
        tab.value("document.querySelectorAll('details').forEach(it => { it.open = true; })");
        fits("the page");
        for button in ["#keys [data-do=release]", "#jobs [data-do=resume]"] {
            tab.click(button);
            tab.wait_for("document.querySelector('dialog').open");
            fits(button);
            tab.press("Escape");
        }
        for page in [
            format!("key?name={LONG}"),
            format!("key?name={LONG}-free"),
            format!("job?name=billing/{LONG}"),
            format!("job?name=billing/{LONG_TOO}"),
            format!("job?name=billing/{LONG}-unknown"),
        ] {
            tab.open(&format!("{}{page}", console.url));
            tab.wait_for("document.querySelector('#live').textContent == 'live'");
            fits(&page);
        }
    }
    drop(all.jobs.shutdown(SECOND).await);
}

/// An expression for the elements whose text reaches over the edge of the section, or the dialog, that they are in.
const WIDER: &str = r"[...document.querySelectorAll('main section *, dialog[open] *, header *')]
  .filter((it) => it.checkVisibility() && !it.closest('svg, thead, select') && [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .filter((it) => {
    const range = document.createRange();
    range.selectNodeContents(it);
    const edge = it.closest('section, dialog, header').getBoundingClientRect().right;
    return range.getBoundingClientRect().right > edge + 0.5;
  }).map((it) => `${it.nodeName} ${it.className} ${it.textContent.slice(0, 60)}`)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_works_below_a_prefix() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let lease = client.acquire("order:7").await.unwrap();
    let console = Console::start(&nodes, &["--operate", "--base-path", "/ops/locks"]);
    assert!(console.url.ends_with("/ops/locks/"), "{}", console.url);
    let browser = Browser::start();
    let tab = browser.tab();
    // Without the slash at the end too.
    tab.open(console.url.trim_end_matches('/'));
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    tab.click("#keys th a");
    tab.wait_for("location.pathname == '/ops/locks/key'");
    tab.click("[data-do=release]");
    tab.type_into("dialog [name=reason]", "its holder hangs");
    tab.click("dialog .does");
    tab.wait_for("document.querySelector('dialog .outcome').className == 'outcome done'");
    tab.press("Escape");
    tab.click(".brand");
    tab.wait_for("/its holder hangs/.test(document.querySelector('#actions')?.innerText)");
    assert_is_calm(&tab, &console);
    drop(lease);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_with_three_tabs_ends_within_a_second_and_they_find_the_next_one() {
    let nodes = voting(3).await;
    let console = Console::start(&nodes, &[]);
    // Each window has a tab that is seen.
    let browsers = [Browser::start(), Browser::start(), Browser::start()];
    let tabs: Vec<_> = browsers.iter().map(Browser::tab).collect();
    for tab in &tabs {
        tab.open(&console.url);
        tab.wait_for("document.querySelector('#live').textContent == 'live'");
    }
    let port = console
        .url
        .rsplit(':')
        .next()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let ended = console.terminate(SECOND);
    // As a shell says of a program that this signal has ended.
    assert_eq!(ended.code(), Some(143), "{ended}");
    for tab in &tabs {
        tab.wait_for("document.querySelector('#live').className == 'off'");
    }
    let _next = Console::start_with(&nodes, MAX_TTL, &["--listen", &format!("127.0.0.1:{port}")]);
    for tab in &tabs {
        tab.wait_for("document.querySelector('#live').textContent == 'live'");
    }
}
