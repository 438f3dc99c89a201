//! The pictures of the documents, and the page at each size and in both colours.

use std::{fs, path::PathBuf};

use redlock_cron::{Action, BoxError, Run, SingletonJob, pause_with};
use redlock_tests::{Browser, Look};

use crate::kit::{Console, SECOND, hourly, named, scheduler, voting, waiting};

/// The variable with the folder in which the pictures of docs/console.md are kept; without it, they are only checked.
const FOLDER: &str = "REDLOCK_PICTURES";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_fits_narrow_and_wide_screens_by_day_and_by_night() {
    let mut nodes = voting(5).await;
    let web = named(&nodes, "order@web-7").await;
    let lease = web.acquire("order:7").await.unwrap();
    let report = web.acquire("report:2026-11").await.unwrap();
    let leads = named(&nodes, "pod-3").await;
    let leads = leads.acquire("importer").await.unwrap();
    let callers = waiting(
        &nodes,
        "order:7",
        &["order@web-8", "order@web-9", "order@web-3"],
    )
    .await;
    let candidates = waiting(&nodes, "importer", &["pod-4", "pod-5"]).await;
    let settles = SingletonJob::every("settle", SECOND, |run: Run| async move {
        let number = run.tick().timestamp();
        tokio::time::sleep(SECOND / 20 * u32::try_from(number % 7).unwrap()).await;
        match number % 5 {
            0 => Err::<(), BoxError>("the ledger does not answer".into()),
            _ => Ok(()),
        }
    });
    let all = vec![
        settles.remember_errors(),
        hourly("reconcile"),
        hourly("close-day"),
        hourly("send-invoices"),
    ];
    let jobs = scheduler(&nodes, "pod-7", all).await;
    let action = Action::by("alice").reason("the ledger moves to another server");
    pause_with(&web, "billing", "close-day", &action)
        .await
        .unwrap();
    nodes.kill(4..5);
    let console = Console::start(&nodes, &["--operate", "--election", "importer"]);
    let browser = Browser::start();
    let tab = browser.tab();
    tab.open(&console.url);
    tab.wait_for_text("billing/settle");
    tab.wait_for("document.querySelectorAll('#nodes .spark').length == 4");
    tab.wait_for_text("4 of 5 nodes vote");
    tab.wait_for("document.querySelector('#jobs .strip')?.viewBox.baseVal.width >= 60");
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var_os(FOLDER).map(PathBuf::from);
    let kept = kept.as_deref().unwrap_or_else(|| temporary.path());
    let others = temporary.path();
    for (name, folder, part, width, height, dark) in [
        ("wide-light", kept, "search", 1_280, 1_060, false),
        ("jobs-light", kept, "jobs", 1_280, 700, false),
        ("narrow-dark", kept, "keys", 360, 1_200, true),
        ("wide-dark", others, "search", 1_280, 1_080, true),
        ("middle-dark", others, "keys", 800, 1_000, true),
        ("narrow-light", others, "search", 360, 1_200, false),
    ] {
        tab.look(Look {
            width,
            height,
            dark,
        });
        tab.value(&format!(
            "document.getElementById('{part}').scrollIntoView({{behavior: 'instant'}})"
        ));
        let wider = tab.value("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wider, 0, "{name}: the page is wider than the screen");
        let faint = tab.value(FAINT);
        assert_eq!(faint, serde_json::json!([]), "{name}: too little contrast");
        let file = folder.join(format!("console-{name}.png"));
        tab.picture(&file);
        let size = fs::metadata(&file).unwrap().len();
        assert!(
            (10_000..=150_000).contains(&size),
            "{name} has {size} bytes"
        );
    }
    assert_eq!(tab.complaints(), [""; 0]);
    drop((callers, candidates, lease, report, leads));
    drop(jobs.shutdown(SECOND).await);
}

/// An expression for the texts whose colour has less contrast to what is behind it than 4.5, which readers of weak sight need.
const FAINT: &str = r"(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const part = (byte) => { const c = byte / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const faint = [];
  for (const it of document.querySelectorAll('body *')) {
    const words = [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!words || !it.checkVisibility() || it.closest('svg, template, noscript')) continue;
    const behind = [];
    for (let at = it; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const [one, other] = [light(behind), light([...behind, getComputedStyle(it).color])];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faint.push(`${it.nodeName} ${it.className} ${it.textContent.slice(0, 30)} ${contrast.toFixed(2)}`);
  }
  return faint;
})()";
