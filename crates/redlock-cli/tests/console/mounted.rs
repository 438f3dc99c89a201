//! The console in a service of one's own, and without a mouse.

use std::sync::{Arc, Mutex};

use redlock_console::Access;
use redlock_tests::Browser;

use crate::kit::{Console, Mounted, named, voting, waiting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_that_a_service_nests_follows_the_access_that_the_service_gives() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let lease = client.acquire("order:7").await.unwrap();
    let access = Arc::new(Mutex::new(Access::Read));
    let service = Mounted::start(client.clone(), Arc::clone(&access)).await;
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&service.url);
    tab.wait_for("location.pathname == '/ops/locks/overview'");
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    assert_eq!(
        tab.value("document.querySelectorAll('[data-do]').length"),
        0
    );

    *access.lock().unwrap() = Access::Operate;
    // The page is from before, and is loaded again for what it has not.
    tab.click("#keys [data-do=release]");
    // Its script has begun once it is live.
    tab.wait_for(
        "document.querySelector('dialog') && document.querySelector('#live').textContent == 'live'",
    );
    tab.click("#keys [data-do=release]");
    tab.wait_for("document.querySelector('dialog').open");

    *access.lock().unwrap() = Access::Read;
    tab.type_into("dialog [name=reason]", "its holder hangs");
    tab.click("dialog .does");
    tab.wait_for("document.querySelector('dialog .outcome').className == 'outcome not-done'");
    let outcome = tab.text("dialog .outcome");
    assert!(outcome.contains("only shows"), "{outcome}");
    tab.press("Escape");
    tab.wait_for("document.querySelectorAll('[data-do]').length == 0");

    *access.lock().unwrap() = Access::None;
    tab.wait_for("document.querySelector('#live').textContent.startsWith('you have no access')");
    *access.lock().unwrap() = Access::Read;
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    lease.release().await.expect("no reader has released it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyboard_and_a_reader_of_screens_find_all_of_it() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let lease = client.acquire("order:7").await.unwrap();
    let console = Console::start(&nodes, &["--operate"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    tab.press("Tab");
    assert_eq!(tab.value("document.activeElement.className"), "skip");
    tab.value("document.querySelector('#keys [data-do=release]').focus()");
    tab.press("Enter");
    tab.wait_for("document.querySelector('dialog').open");
    assert_eq!(tab.value("document.activeElement.name"), "by");
    let nameless = "[...document.querySelectorAll('input:not([type=hidden]), select, button, a, svg, dialog')] \
        .filter(it => !(it.ariaLabel || it.labels?.length || it.textContent.trim() || it.title \
            || it.getAttribute('aria-labelledby'))).map(it => it.outerHTML)";
    assert_eq!(tab.value(nameless), serde_json::json!([]));
    // What has the focus is not lost to a newer section.
    tab.press("Escape");
    tab.wait_for("document.activeElement.dataset.do == 'release'");
    let other = client.acquire("a:1").await.unwrap();
    // With a line, it is above the other.
    let callers = waiting(&nodes, "a:1", &["web-8"]).await;
    tab.wait_for("document.querySelector('#keys tbody a').innerText == 'a:1'");
    assert_eq!(tab.value("document.activeElement.dataset.do"), "release");
    assert_eq!(
        tab.value("document.activeElement.closest('tr').querySelector('a').innerText"),
        "order:7"
    );
    drop((lease, other, callers));
}
