//! What an operator does by buttons.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use redlock_cron::{BoxError, Run, SingletonJob};
use redlock_tests::{Browser, Tab};

use crate::kit::{Console, SECOND, hourly, named, scheduler, voting};

/// Presses a button, says why, and confirms; returns what the page says of it.
fn do_it(tab: &Tab, button: &str, reason: &str) -> String {
    tab.click(button);
    tab.wait_for("document.querySelector('dialog').open");
    // The browser remembers it for the next time.
    if tab.value("document.querySelector('dialog [name=by]').value") == "" {
        tab.type_into("dialog [name=by]", "alice");
    }
    tab.type_into("dialog [name=reason]", reason);
    tab.click("dialog .does");
    tab.wait_for("/done/.test(document.querySelector('dialog .outcome').className)");
    let outcome = tab.text("dialog .outcome");
    let class = tab.value("document.querySelector('dialog .outcome').className");
    tab.press("Escape");
    tab.wait_for("!document.querySelector('dialog').open");
    assert_eq!(class, "outcome done", "{outcome}");
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_button_does_what_its_confirmation_says() {
    let nodes = voting(3).await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let long = SingletonJob::cron("long", "0 0 0 1 1 *", "UTC", move |run: Run| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::Relaxed);
            run.stopping().await;
            Ok::<(), BoxError>(())
        }
    });
    let each = SingletonJob::every("each", 4 * SECOND, |_: Run| async {
        Ok::<(), BoxError>(())
    });
    let jobs = scheduler(&nodes, "pod-7", vec![long, each, hourly("hourly")]).await;
    let holder = named(&nodes, "web-7").await;
    let lease = holder.acquire("order:7").await.unwrap();
    let console = Console::start(&nodes, &["--operate"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    let row = "tr:has(th a[href='job?name=billing/long'])";
    tab.wait_for(&format!("document.querySelector(\"{row}\")"));

    do_it(&tab, &format!("{row} [data-do=pause]"), "the ledger moves");
    tab.wait_for(&format!(
        "/paused/.test(document.querySelector(\"{row}\").innerText)"
    ));
    tab.wait_for(&format!(
        "/the ledger moves/.test(document.querySelector(\"{row}\").innerText)"
    ));
    tab.wait_for("/the ledger moves/.test(document.querySelector('#actions').innerText)");
    do_it(&tab, &format!("{row} [data-do=resume]"), "it has moved");
    tab.wait_for(&format!(
        "document.querySelector(\"{row} [data-do=pause]\")"
    ));

    do_it(&tab, &format!("{row} [data-do=trigger]"), "a customer asks");
    tab.wait_for(&format!(
        "/runs on pod-7/.test(document.querySelector(\"{row}\").innerText)"
    ));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    do_it(
        &tab,
        &format!("{row} [data-do=stop]"),
        "it reads the wrong ledger",
    );
    tab.wait_for(&format!(
        "!/runs on/.test(document.querySelector(\"{row}\").innerText)"
    ));

    // Its holder believes in it until its next renewal.
    do_it(&tab, "#keys [data-do=release]", "its holder hangs");
    tab.wait_for("!/order:7/.test(document.querySelector('#keys').innerText)");

    tab.open(&format!("{}job?name=billing/each", console.url));
    tab.wait_for("document.querySelector('#runs .pill.ok')");
    do_it(&tab, "#runs [data-do=rerun]", "once more");
    tab.wait_for("/backfill/.test(document.querySelector('#runs').innerText)");
    tab.click("[data-do=backfill]");
    for (name, time) in [
        ("from", "2026-01-01T00:00:00"),
        ("to", "2026-01-01T00:00:39"),
    ] {
        tab.value(&format!(
            "document.querySelector('dialog [name={name}]').value = '{time}'"
        ));
    }
    tab.click("dialog .counts");
    tab.wait_for("/10 ticks/.test(document.querySelector('dialog output').textContent)");
    tab.press("Escape");
    tab.wait_for("!document.querySelector('dialog').open");
    tab.click("[data-do=backfill]");
    for (name, time) in [
        ("from", "2026-01-01T00:00:00"),
        ("to", "2026-01-01T00:00:39"),
    ] {
        tab.value(&format!(
            "document.querySelector('dialog [name={name}]').value = '{time}'"
        ));
    }
    tab.type_into("dialog [name=reason]", "an outage");
    tab.click("dialog .does");
    tab.wait_for("/done/.test(document.querySelector('dialog .outcome').className)");
    assert_eq!(
        tab.value("document.querySelector('dialog .outcome').className"),
        "outcome done"
    );
    tab.press("Escape");
    do_it(&tab, "[data-do=cancel]", "enough");

    drop(jobs.shutdown(SECOND).await);
    tab.open(&format!("{}job?name=billing/hourly", console.url));
    do_it(&tab, "[data-do=forget]", "no replica has it");
    tab.open(&console.url);
    for words in ["its holder hangs", "an outage", "enough", "alice"] {
        tab.wait_for_text(words);
    }
    assert_eq!(tab.complaints(), [""; 0]);
    drop(lease);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_has_no_buttons_and_the_server_refuses_what_a_button_would_do() {
    let nodes = voting(3).await;
    let holder = named(&nodes, "web-7").await;
    let lease = holder.acquire("order:7").await.unwrap();
    let (reads, operates) = (
        Console::start(&nodes, &[]),
        Console::start(&nodes, &["--operate"]),
    );
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&reads.url);
    tab.wait_for_text("order:7");
    assert_eq!(
        tab.value("document.querySelectorAll('[data-do], dialog').length"),
        0
    );
    let post = "fetch('actions/release', {method: 'POST', body: new URLSearchParams({key: 'order:7', reason: 'x'})}).then(it => it.status)";
    assert_eq!(tab.value(post), 403);
    // A page of another origin, such as that of the other console, sends what its reader could.
    let other = post.replace(
        "'actions/release'",
        &format!("'{}actions/release'", operates.url),
    );
    let other = other.replace("{method: 'POST',", "{method: 'POST', mode: 'no-cors',");
    drop(tab.value(&format!("{other}.catch(() => 0)")));
    let form = browser.tab();
    form.open("data:text/html,<form method=post id=f></form>");
    form.value(&format!(
        "(() => {{ f.action = '{}actions/release'; for (const [k, v] of [['key', 'order:7'], ['reason', 'x']]) \
         {{ const i = document.createElement('input'); i.name = k; i.value = v; f.append(i); }} f.submit(); }})()",
        operates.url
    ));
    form.wait_for("location.href.endsWith('actions/release') && document.body.innerText.includes('another site')");
    tab.open(&operates.url);
    tab.wait_for_text("order:7");
    assert!(
        !tab.text("#actions").contains("release"),
        "{}",
        tab.text("#actions")
    );
    lease.release().await.unwrap();
}
