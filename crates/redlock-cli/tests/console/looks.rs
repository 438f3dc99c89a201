//! What a reader sees while things happen.

use std::time::Duration;

use redlock_core::AcquireOptions;
use redlock_cron::{BoxError, Run, SingletonJob};
use redlock_tests::{Browser, eventually};

use crate::kit::{Console, SECOND, hourly, named, scheduler, voting, waiting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_follows_a_line_that_grows_a_node_that_dies_and_a_job_that_fails() {
    let mut nodes = voting(3).await;
    let holder = named(&nodes, "order@web-7").await;
    let lease = holder.acquire("order:7").await.unwrap();
    let fails = SingletonJob::every("reconcile", SECOND, |_: Run| async {
        Err::<(), BoxError>("the ledger does not answer".into())
    });
    let console = Console::start(&nodes, &[]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    tab.wait_for_text("3 of 3 nodes vote; 2 are needed.");
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    tab.wait_for_text("order@web-7");

    let callers = waiting(&nodes, "order:7", &["order@web-8", "order@web-9"]).await;
    tab.wait_for("document.querySelector('#keys details b').textContent == '2'");
    tab.click("#keys summary");
    let line = "[...document.querySelectorAll('#keys ol li')].map(it => it.innerText)";
    tab.wait_for(&format!(
        "{line}[0].startsWith('order@web-8') && {line}[1].startsWith('order@web-9')"
    ));
    // What a reader has opened stays open while newer sections come.
    let newer = || {
        let streamed = tab.streamed();
        let have_keys = streamed.iter().filter(|event| event.contains("\"keys\":"));
        have_keys.count()
    };
    let before = newer();
    eventually("newer keys come", 20 * SECOND, newer, |count| {
        *count > before + 1
    })
    .await;
    assert_eq!(
        tab.value("document.querySelector('#keys details').open"),
        true
    );

    let jobs = scheduler(
        &nodes,
        "pod-7",
        vec![fails.remember_errors(), hourly("close-day")],
    )
    .await;
    tab.wait_for_text("billing/reconcile");
    tab.wait_for("/[1-9] of .* failed/.test(document.querySelector('#jobs').innerText)");
    tab.wait_for("/min/.test(document.querySelector('#jobs time.left').textContent + document.querySelectorAll('#jobs time.left')[1]?.textContent)");

    nodes.kill(2..3);
    tab.wait_for_text("2 of 3 nodes vote; 2 are needed: if one more fails, nothing can be locked.");
    tab.wait_for("document.title.startsWith('2 of 3 vote')");
    tab.wait_for("document.querySelectorAll('#nodes .pill.bad').length == 1");
    assert_eq!(tab.complaints(), [""; 0]);

    // A click at a bar leads to what is said of its run.
    tab.click("#jobs a[href='job?name=billing/reconcile'] ~ *, #jobs a.runs[href^='job?name=billing/reconcile'] svg");
    tab.wait_for_text("the ledger does not answer");
    tab.wait_for("/^#run-\\d{13}-1$/.test(location.hash) && document.querySelector('tr:target')");

    drop(callers);
    drop(jobs.shutdown(SECOND).await);
    drop(lease);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_a_page_with_its_life() {
    let nodes = voting(3).await;
    let (one, other) = (named(&nodes, "one").await, named(&nodes, "other").await);
    let console = Console::start(&nodes, &[]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&format!("{}key?name=a%20key%2F1", console.url));
    tab.wait_for_text("a key/1");
    let lease = one.acquire("a key/1").await.unwrap();
    tab.wait_for("document.querySelectorAll('#answers tbody tr').length == 3");
    tab.wait_for("document.querySelector('#key').innerText.includes('one')");
    lease.release().await.unwrap();
    let lease = other
        .acquire_with("a key/1", AcquireOptions::new())
        .await
        .unwrap();
    tab.wait_for("document.querySelector('#key').innerText.includes('other')");
    tab.wait_for("document.querySelectorAll('#timeline li').length >= 2");
    tab.wait_for("document.querySelectorAll('#timeline circle').length >= 2");
    lease.release().await.unwrap();
    tab.wait_for("/free/.test(document.querySelector('#verdict').innerText)");
    assert_eq!(tab.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_is_an_address_that_can_be_sent() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let leases = [
        client.acquire("order:7").await.unwrap(),
        client.acquire("stock:1").await.unwrap(),
    ];
    let slot = client
        .slots("importer", 3)
        .unwrap()
        .acquire()
        .await
        .unwrap();
    let console = Console::start(&nodes, &[]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    let rows =
        "[...document.querySelectorAll('#keys tbody th')].map(it => it.innerText).sort().join()";
    tab.wait_for(&format!("{rows}.includes('order:7,stock:1')"));
    tab.press("/");
    tab.wait_for("document.activeElement.name == 'q'");
    tab.type_into("#search input", "stock");
    tab.wait_for(&format!("{rows} == 'stock:1'"));
    let address = tab.value("location.href");
    let address = address.as_str().unwrap();
    assert!(address.ends_with("/overview?q=stock"), "{address}");
    let sent = browser.tab();
    sent.open(address);
    sent.wait_for(&format!("{rows} == 'stock:1'"));
    sent.open(&format!("{}?kind=slot", console.url));
    sent.wait_for(&format!(
        "{rows}.startsWith('importer#') && !{rows}.includes(',')"
    ));
    assert_eq!(sent.value("document.querySelector('select').value"), "slot");
    drop((leases, slot));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tab_that_is_not_seen_has_no_stream_and_shows_the_present_when_it_is_seen_again() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let console = Console::start(&nodes, &[]);
    let browser = Browser::start();
    let tabs: Vec<_> = (0..7).map(|_| browser.tab()).collect();
    // Browsers open six connections to a host at most.
    for tab in &tabs {
        tab.show();
        tab.open(&console.url);
        tab.wait_for("document.querySelector('#live').textContent == 'live'");
    }
    let first = &tabs[0];
    let streamed = first.streamed().len();
    let lease = client.acquire("order:7").await.unwrap();
    tabs[6].wait_for_text("order:7");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(
        first.streamed().len(),
        streamed,
        "a hidden tab has a stream"
    );
    first.show();
    first.wait_for_text("order:7");
    drop(lease);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_slept_for_an_hour_begins_again_and_counts_by_the_clock_of_the_server() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let lease = client.acquire("order:7").await.unwrap();
    let console = Console::start(&nodes, &[]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    tab.wait_for("document.querySelector('#live').textContent == 'live'");
    let streams = || {
        let requests = tab.requests();
        let to_stream = requests.iter().filter(|it| it.ends_with("/events"));
        to_stream.count()
    };
    assert_eq!(streams(), 1);
    tab.value("(real => { Date.now = () => real() + 3600_000; })(Date.now)");
    eventually("another stream begins", 20 * SECOND, streams, |count| {
        *count == 2
    })
    .await;
    let other = client.acquire("stock:1").await.unwrap();
    tab.wait_for_text("stock:1");
    // Not an hour.
    tab.wait_for("/^\\d+ s$/.test(document.querySelector('#keys time.since').textContent)");
    drop((lease, other));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_script_the_page_has_all_tables() {
    let nodes = voting(3).await;
    let client = named(&nodes, "web-7").await;
    let lease = client.acquire("order:7").await.unwrap();
    let callers = waiting(&nodes, "order:7", &["web-8"]).await;
    let jobs = scheduler(&nodes, "pod-7", vec![hourly("close-day")]).await;
    let console = Console::start(&nodes, &["--operate", "--election", "importer"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.forbid_scripts();
    for _ in 0..50 {
        tab.open(&console.url);
        if tab.html().contains("billing/close-day") {
            break;
        }
        tokio::time::sleep(SECOND / 5).await;
    }
    let html = tab.html();
    for words in [
        "3 of 3 nodes vote; 2 are needed.",
        "order:7",
        "web-8",
        "billing/close-day",
        "importer",
        "class=\"margin\"",
        "http-equiv=\"refresh\" content=\"5\"",
    ] {
        assert!(html.contains(words), "{words} is not in {html}");
    }
    // A button would do nothing.
    assert!(html.contains("data-do"), "{html}");
    assert!(tab.size("[data-do]").is_none());
    let asked = tab.requests().len();
    // It comes again by itself.
    for _ in 0..80 {
        if tab.requests().len() > asked {
            break;
        }
        tokio::time::sleep(SECOND / 10).await;
    }
    assert!(tab.requests().len() > asked, "{:?}", tab.requests());
    drop((callers, lease));
    drop(jobs.shutdown(SECOND).await);
}
