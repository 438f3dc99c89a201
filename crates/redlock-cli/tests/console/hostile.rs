//! Names that want to be more than names, and addresses that are not the root.

use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_cron::{Action, BoxError, Run, SingletonJob, SingletonScheduler, log_action};
use redlock_tests::{Browser, Tab};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_in_every_field_are_text() {
    let nodes = voting(3).await;
    let client = named(&nodes, HOSTILE).await;
    let lease = client.acquire(HOSTILE).await.unwrap();
    let leads = client.acquire("importer").await.unwrap();
    let mut waits = JoinSet::new();
    for key in [HOSTILE, "importer"] {
        let other = Redlock::builder()
            .nodes(nodes.urls())
            .label(HOSTILE)
            .ttl(MAX_TTL)
            .max_ttl(MAX_TTL);
        let other = other.build().await.unwrap();
        let patient = AcquireOptions::new().wait(Wait::UpTo(60 * SECOND));
        waits.spawn(async move { drop(other.acquire_with(key, patient).await) });
    }
    let fails = SingletonJob::every(HOSTILE, SECOND, |_: Run| async {
        Err::<(), BoxError>(HOSTILE.into())
    });
    let builder = SingletonScheduler::standalone(client.clone()).namespace("billing");
    let jobs = builder.replica(HOSTILE).build().unwrap();
    jobs.add(fails.remember_errors()).await.unwrap();
    jobs.start().await.unwrap();
    let action = Action::by(HOSTILE).reason(HOSTILE);
    log_action(&client, "pause", HOSTILE, &action)
        .await
        .unwrap();

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
    drop((lease, leads, waits));
    drop(jobs.shutdown(SECOND).await);
}

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
