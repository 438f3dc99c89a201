//! Ten thousand keys, and more jobs than a page shows.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use redlock_core::Redlock;
use redlock_tests::{Browser, Nodes, eventually};

use crate::kit::{Console, SECOND, hourly};

const KEYS: usize = 10_000;
const JOBS: usize = 200;

/// The most times that the page is painted until it is soon there.
const MOST_ROUNDS: usize = 6;

/// As long as the test: nothing is renewed meanwhile.
const TTL: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_ten_thousand_keys_is_small_and_soon_there() {
    let nodes = Nodes::start(3);
    let builder = Redlock::builder()
        .nodes(nodes.urls())
        .label("web-7")
        .ttl(TTL)
        .max_ttl(TTL);
    let client = builder.build().await.unwrap();
    client.dangerous_bless().await;
    let keys = stream::iter(0..KEYS).map(|key| client.acquire(format!("order:{key}")));
    let leases: Vec<_> = keys
        .buffer_unordered(256)
        .map(Result::unwrap)
        .collect()
        .await;
    let jobs = redlock_cron::SingletonScheduler::standalone(client.clone()).namespace("billing");
    let jobs = jobs.replica("pod-7").build().unwrap();
    for job in 0..JOBS {
        jobs.add(hourly(&format!("close-day-{job}"))).await.unwrap();
    }
    jobs.start().await.unwrap();
    let console = Console::start_with(&nodes, TTL, &["--listen", "127.0.0.1:0", "--operate"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    tab.wait_for("/ of 10000/.test(document.querySelector('#keys h2').textContent)");
    let are_known = || tab.value("/ of 200/.test(document.querySelector('#jobs h2').textContent)");
    eventually("all jobs are known", 60 * SECOND, are_known, |known| {
        *known == true
    })
    .await;
    // Again, with all that is known.
    tab.open(&console.url);
    let rows = "document.querySelectorAll('#keys tbody tr').length";
    tab.wait_for(&format!("{rows} > 100"));
    let page = tab.value("performance.getEntriesByType('navigation')[0].decodedBodySize");
    assert!(
        page.as_u64().unwrap() <= 150_000,
        "the page has {page} bytes"
    );
    let entry = "performance.getEntriesByName('first-contentful-paint')[0]";
    // A machine that does other work stretches some of them.
    let painted = (0..MOST_ROUNDS).map(|_| {
        tab.open(&console.url);
        tab.wait_for(entry);
        let painted = tab.value(&format!("{entry}.startTime"));
        println!("{page} bytes, painted after {painted} ms");
        painted.as_f64().unwrap()
    });
    let too_late = painted.take_while(|ms| *ms >= 3_000.0).count();
    assert!(too_late < MOST_ROUNDS, "it was painted too late each time");
    // All rows are found by a search.
    tab.type_into("#search input", "order:9999");
    tab.wait_for(&format!("{rows} == 1"));
    tab.value("(() => { const it = document.querySelector('#search input'); it.value = 'close-day-7'; it.dispatchEvent(new Event('input', {bubbles: true})); })()");
    tab.wait_for("document.querySelector('#jobs > table').rows.length == 12");
    let largest = tab.streamed().iter().map(String::len).max().unwrap();
    println!("the largest event has {largest} bytes");
    assert!(largest <= 100_000, "an event has {largest} bytes");
    assert_eq!(tab.complaints(), [""; 0]);
    drop(jobs.shutdown(SECOND).await);
    drop(leases);
}
