//! `jobs` tells what is remembered of jobs that another process runs, and pauses, resumes, triggers and forgets them.

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};

use redlock_core::Redlock;
use redlock_cron::{
    BoxError, Overlap, Run, SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler,
};
use redlock_sandbox::ServerOptions;
use serde_json::Value;

use crate::kit::{MAX_TTL, Nodes, Relay, at_terminal, screen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_and_pauses_are_told_without_running_the_job() {
    let nodes = Nodes::blessed(3).await;
    let job = |arguments: &[&str]| {
        let done = nodes.run(&[&["jobs", "billing/close-day"], arguments].concat());
        (done.code, done.out)
    };
    let (code, unknown) = job(&[]);
    assert_eq!(code, 1, "{unknown}");
    let words =
        "nothing is remembered of billing/close-day; `redlock jobs` lists the jobs that are known";
    assert_eq!(unknown.replace('\n', " ").trim(), words);
    let unknown: Value = serde_json::from_str(&job(&["--json"]).1).unwrap();
    assert_eq!(
        (&unknown["known"], &unknown["complete"]),
        (&false.into(), &true.into())
    );
    let scheduler = JobScheduler::new().await.unwrap();
    let builder = SingletonScheduler::builder(nodes.client().await, scheduler);
    let jobs = builder.namespace("billing").build().unwrap();
    let second = Duration::from_secs(1);
    jobs.add(SingletonJob::every("close-day", second, |_: Run| async {
        Ok::<(), BoxError>(())
    }))
    .await
    .unwrap();
    jobs.start().await.unwrap();
    let runs = loop {
        let (_, out) = job(&["--json"]);
        let json: Value = serde_json::from_str(&out).unwrap();
        let runs = json["runs"].as_array().unwrap().clone();
        if runs.iter().any(|run| run["outcome"] == "ok") && is_registered(&json) {
            assert_eq!(
                (&json["known"], &json["paused"]),
                (&true.into(), &false.into())
            );
            break runs;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(
        runs.iter()
            .all(|run| run["attempt"] == 1 && run["by_hand"] == false)
    );
    jobs.pause("close-day").await.unwrap();
    let (code, out) = job(&[]);
    assert_eq!(code, 0);
    assert!(
        out.starts_with("paused since ") && out.contains(": ok after "),
        "{out}"
    );
    // On a busy machine each of them may have taken longer.
    let is_quick = runs
        .iter()
        .any(|run| run["outcome"] == "ok" && run["took_ms"] == 0.0);
    assert!(
        !is_quick || out.contains(": ok after less than 1 ms"),
        "{out}"
    );
    assert!(!out.contains("are not among these"), "{out}");
    let list = nodes.run(&["jobs"]).out;
    assert!(!out.contains("0ns") && !list.contains("0ns"), "{out}{list}");
    jobs.resume("close-day").await.unwrap();
    assert!(job(&[]).1.starts_with("not paused\n"));
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    assert_eq!(nodes.run(&["jobs", "close-day"]).code, 2);
    assert_eq!(nodes.run(&["jobs", "/close-day"]).code, 2);
}

#[tokio::test]
async fn without_a_majority_nothing_is_said_of_a_job() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].kill().unwrap();
    nodes[1].kill().unwrap();
    let done = nodes.run(&["jobs", "billing/close-day"]);
    done.complained(3, "refused");
}

/// Starts a scheduler with one job.
async fn running(nodes: &Nodes, namespace: &str, job: SingletonJob) -> SingletonScheduler {
    running_by(nodes.client().await, namespace, job).await
}

/// Starts a scheduler with one job, whose nodes are those of this client.
async fn running_by(client: Redlock, namespace: &str, job: SingletonJob) -> SingletonScheduler {
    let scheduler = JobScheduler::new().await.unwrap();
    let builder = SingletonScheduler::builder(client, scheduler);
    let jobs = builder.namespace(namespace).build().unwrap();
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    jobs
}

/// A job of each second that does this.
fn each_second(name: &str, takes: Duration) -> SingletonJob {
    let work = move |_: Run| async move {
        tokio::time::sleep(takes).await;
        Ok::<(), BoxError>(())
    };
    SingletonJob::every(name, Duration::from_secs(1), work)
}

/// Whether a scheduler has made the job known.
fn is_registered(memory: &Value) -> bool {
    memory["registered"].is_object()
}

/// What is remembered of a job, once that is so.
async fn once(nodes: &Nodes, job: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..300 {
        let out = nodes.run(&["jobs", job, "--json"]).out;
        let memory = serde_json::from_str(&out).unwrap();
        if is_so(&memory) {
            return memory;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not so: {job}: {}", nodes.run(&["jobs", job, "--json"]).out)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_jobs_are_listed_with_how_they_stand() {
    let mut nodes = Nodes::blessed(3).await;
    assert_eq!(nodes.run(&["jobs", "--json"]).out.trim(), "[]");
    let jobs = running(&nodes, "billing", each_second("close-day", Duration::ZERO)).await;
    let ok = |memory: &Value| memory["runs"][0]["outcome"] == "ok" && is_registered(memory);
    once(&nodes, "billing/close-day", ok).await;
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    // One whose name is kept as a hash, under several keys, and one that was paused before it ever ran.
    let name = "x".repeat(128);
    let long = format!("stock/{name}");
    let jobs = running(&nodes, "stock", each_second(&name, Duration::ZERO)).await;
    once(&nodes, &long, ok).await;
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    for name in ["count", &name] {
        nodes.pause_job("stock", name).await;
    }
    nodes[0].kill().unwrap();
    let done = nodes.run(&["jobs"]).ended(0);
    for words in [
        "billing/close-day  idle; next tick 20",
        "stock/count  paused; no run",
        "note some names are too long to be shown",
        "refused",
    ] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }
    let done = nodes.run(&["jobs", "--json"]);
    assert!(done.err.contains("too long to be shown"), "{done:?}");
    let json: Value = serde_json::from_str(&done.out).unwrap();
    let names: Vec<_> = (0..2).map(|at| json[at]["job"].as_str().unwrap()).collect();
    assert_eq!(names, ["billing/close-day", "stock/count"]);
    assert_eq!((&json[1]["paused"], &json[2]), (&true.into(), &Value::Null));
    assert_eq!(nodes.run(&["jobs", &long]).code, 0);
    nodes[1].kill().unwrap();
    assert_eq!(nodes.run(&["jobs"]).code, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_paused_and_resumed_by_name_and_a_slip_in_it_is_told() {
    let nodes = Nodes::blessed(3).await;
    let jobs = running(&nodes, "billing", each_second("close-day", Duration::ZERO)).await;
    let ran = |memory: &Value| memory["runs"][0]["outcome"] == "ok";
    let skipped = |memory: &Value| memory["runs"][0]["outcome"] == "paused";
    once(&nodes, "billing/close-day", ran).await;
    let slip = nodes.run(&["jobs", "pause", "billing/closeday"]);
    slip.complained(2, "nothing is remembered of billing/closeday");
    let done = nodes.run(&["jobs", "pause", "billing/close-day"]);
    done.told(0, "is paused");
    once(&nodes, "billing/close-day", skipped).await;
    let shown = nodes.run(&["jobs", "billing/close-day"]).out;
    let lines: Vec<_> = shown.lines().collect();
    let is_note =
        |line: &&&str| line.starts_with("note tick 20") && line.ends_with("Z: not started, paused");
    assert!(lines.iter().any(|line| is_note(&line)), "{shown}");
    assert!(lines.contains(&"its lock is free"), "{shown}");
    let good = lines.iter().filter(|line| line.contains(": ok after "));
    assert!(good.clone().count() > 0, "{shown}");
    assert!(good.clone().all(|line| line.starts_with("ok ")), "{shown}");
    let listed = nodes.run(&["jobs"]).out;
    let words = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.starts_with("billing/close-day paused; tick 20")
            && words.ends_with(": not started, paused"),
        "{listed}"
    );
    let memory = once(&nodes, "billing/close-day", skipped).await;
    assert_eq!(memory["runs"][0]["not_started"], "paused");
    let done = nodes.run(&["jobs", "resume", "billing/close-day", "--json"]);
    assert_eq!((done.code, done.out.trim()), (0, "{\"paused\":false}"));
    once(&nodes, "billing/close-day", ran).await;
    drop(jobs.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_forgotten_on_all_nodes_when_somebody_says_so_and_it_does_not_run() {
    let nodes = Nodes::blessed(3).await;
    let forget = |nodes: &Nodes, more: &[&str]| {
        nodes.run(&[&["jobs", "forget", "billing/close-day"], more].concat())
    };
    let jobs = running(
        &nodes,
        "billing",
        each_second("close-day", Duration::from_secs(60)),
    )
    .await;
    let runs = |memory: &Value| memory["running_on"].is_string();
    once(&nodes, "billing/close-day", runs).await;
    let done = forget(&nodes, &["--yes"]);
    done.complained(2, "it runs on");
    drop(jobs.shutdown(Duration::ZERO).await);
    assert_eq!(nodes.run(&["jobs", "pause", "billing/close-day"]).code, 0);
    once(&nodes, "billing/close-day", |memory| !runs(memory)).await;

    let done = forget(&nodes, &[]).ended(2);
    for words in ["may be started a second time", "it is paused", "--yes"] {
        assert!(done.err.contains(words), "{words}: {done:?}");
    }
    assert_eq!(nodes.run(&["jobs", "billing/close-day"]).code, 0);
    // A node that is away remembers it when it is back.
    nodes[2].freeze().unwrap();
    let done = forget(&nodes, &["--yes"]);
    done.told(2, "may still remember it");
    nodes[2].thaw().unwrap();
    forget(&nodes, &["--yes"]).ended(0);
    let keys = nodes.keys();
    assert!(
        !keys.iter().any(|key| key.contains("close-day")),
        "{keys:?}"
    );
    assert_eq!(forget(&nodes, &["--yes"]).code, 1, "there is nothing");
}

#[tokio::test]
async fn a_job_of_which_too_few_nodes_know_is_not_forgotten() {
    let mut nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "close-day").await;
    let remembering = |nodes: &Nodes| {
        let keys = nodes.keys();
        let key = keys.into_iter().find(|key| key.contains("close-day"));
        key.map(|key| key.split(':').next().unwrap().parse::<usize>().unwrap())
    };
    // The nodes that have forgotten do not vote, and the one that remembers is no majority.
    let remembers = remembering(&nodes).unwrap();
    for other in (0..3).filter(|node| *node != remembers) {
        nodes[other].restart().unwrap();
    }
    let done = nodes.run(&["jobs", "forget", "billing/close-day", "--yes"]);
    done.complained(3, "nothing was done");
    assert_eq!(remembering(&nodes), Some(remembers));
}

#[tokio::test]
async fn a_job_that_changed_while_somebody_was_asked_is_not_forgotten() {
    let nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "close-day").await;
    let line = "\"$REDLOCK\" jobs forget billing/close-day";
    let mut forget = at_terminal(line, &nodes).spawn().unwrap();
    let mut keyboard = forget.stdin.take().unwrap();
    screen(&mut forget, "Type yes");
    nodes.run(&["jobs", "resume", "billing/close-day"]).ended(0);
    keyboard.write_all(b"yes\r").unwrap();
    screen(&mut forget, "nothing was done");
    assert_eq!(forget.wait().unwrap().code(), Some(2));
    let keys = nodes.keys();
    assert!(keys.iter().any(|key| key.contains("close-day")), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_may_overlap_is_told_and_its_job_is_not_forgotten() {
    let nodes = Nodes::blessed(3).await;
    let job = each_second("close-day", Duration::from_secs(60)).overlap(Overlap::Allow);
    let jobs = running(&nodes, "billing", job).await;
    let runs = |memory: &Value| memory["running_on"].is_string();
    once(&nodes, "billing/close-day", runs).await;
    let listed = nodes.run(&["jobs"]);
    assert!(
        listed.out.contains("billing/close-day  runs on"),
        "{listed:?}"
    );
    let done = nodes.run(&["jobs", "forget", "billing/close-day", "--yes"]);
    done.complained(2, "it runs on");
    drop(jobs.shutdown(Duration::ZERO).await);
}

/// Nodes that are far away are asked for many jobs at once.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it measures")]
async fn a_list_of_jobs_does_not_wait_for_one_after_the_other() {
    const DELAY: Duration = Duration::from_millis(100);
    const JOBS: u32 = 32;
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let relays: Vec<_> = nodes
        .iter()
        .map(|node| Relay::delaying(node.address(), DELAY))
        .collect();
    let nodes = nodes.at(relays.iter().map(Relay::url).collect());
    let listed = async |count: u32| {
        let begun = Instant::now();
        let done = nodes.run(&["jobs", "--json"]);
        let took = begun.elapsed();
        let json: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(json.as_array().unwrap().len(), count as usize, "{done:?}");
        took
    };
    redlock_cron::pause(&client, "billing", "0").await.unwrap();
    let one = listed(1).await;
    for job in 1..JOBS {
        let name = job.to_string();
        redlock_cron::pause(&client, "billing", &name)
            .await
            .unwrap();
    }
    let all = listed(JOBS).await;
    // One after the other would take this time for each.
    assert!(all < one + DELAY * (JOBS - 1) / 2, "{one:?}, {all:?}");
    client.close().await;
}

#[tokio::test]
async fn what_no_job_can_be_called_hides_no_job() {
    let nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "close-day").await;
    let known = nodes
        .keys()
        .into_iter()
        .find(|key| key.contains("close-day"));
    let known = known.unwrap();
    let (_, key) = known.split_once(": ").unwrap();
    for node in 0..3 {
        let odd = key.replace("billing/close-day", "/");
        nodes.ask(node, &["HSET", &odd, "some", "thing"]);
    }
    let done = nodes.run(&["jobs"]);
    done.told(0, "billing/close-day  paused");
}

#[tokio::test]
async fn a_job_that_was_paused_and_never_ran_is_forgotten_without_a_question() {
    let nodes = Nodes::blessed(3).await;
    nodes.pause_job("typo", "x").await;
    nodes.run(&["jobs", "resume", "typo/x"]).ended(0);
    assert!(nodes.run(&["jobs"]).out.contains("typo/x"));
    let forget = || nodes.run(&["jobs", "forget", "typo/x"]);
    let done = forget();
    done.told(0, "remembers nothing");
    assert!(!nodes.run(&["jobs"]).out.contains("typo/x"));
    let done = forget();
    done.told(1, "nothing is remembered");
}

#[tokio::test]
async fn a_job_whose_lock_somebody_holds_is_not_forgotten() {
    let nodes = Nodes::blessed(3).await;
    let redlock = nodes.client().await;
    let lock = redlock_cron::remembered_under("billing", "close-day").unwrap();
    let held = redlock.acquire(&lock).await.unwrap();
    let forget = || nodes.run(&["jobs", "forget", "billing/close-day", "--yes"]);
    let done = forget();
    done.complained(2, "its lock is held");
    held.release().await.unwrap();
    assert_eq!(forget().code, 1);
}

/// A job that is not due in these tests.
const IN_JULY: &str = "0 0 0 1 7 *";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_triggered_on_one_of_its_replicas_and_the_exit_code_is_its_outcome() {
    let nodes = Nodes::blessed(3).await;
    let trigger =
        |more: &[&str]| nodes.run(&[&["jobs", "trigger", "billing/close-day"], more].concat());
    let slip = trigger(&[]);
    let words = "nothing is remembered of billing/close-day";
    slip.complained(2, words);
    let runs = Arc::new(AtomicU64::new(0));
    let job = || {
        let runs = Arc::clone(&runs);
        let work = move |_: Run| {
            let number = runs.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                match number {
                    1 => Ok(()),
                    2 => Err(BoxError::from("no ledger")),
                    _ => std::future::pending().await,
                }
            }
        };
        SingletonJob::cron("close-day", IN_JULY, "UTC", work)
    };
    let first = running(&nodes, "billing", job()).await;
    let second = running(&nodes, "billing", job()).await;
    // No tick of it was due before.
    once(&nodes, "billing/close-day", is_registered).await;
    let done = trigger(&["--wait"]);
    done.told(0, "by hand: ok after");
    assert!(done.err.contains("asked all replicas at 20"), "{done:?}");
    let done = trigger(&["--wait", "--json"]);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(
        (done.code, &json["outcome"]),
        (2, &"failed".into()),
        "{done:?}"
    );
    let asked = json["asked"].as_str().unwrap();
    let done = trigger(&[]);
    done.told(0, "has started it");
    let done = trigger(&["--wait"]);
    done.told(1, ": not started, another run went on");
    assert_eq!(runs.load(Ordering::SeqCst), 3);

    let out = nodes.run(&["jobs", "billing/close-day", "--json"]).out;
    let memory: Value = serde_json::from_str(&out).unwrap();
    assert!(memory["running_on"].is_string(), "{memory}");
    let remembered = memory["runs"].as_array().unwrap();
    assert!(
        remembered.iter().all(|run| run["by_hand"] == true),
        "{memory}"
    );
    let outcomes: Vec<_> = remembered.iter().map(|run| &run["outcome"]).collect();
    let expected: [Value; 4] = [
        "overlapping".into(),
        Value::Null,
        "failed".into(),
        "ok".into(),
    ];
    assert_eq!(outcomes, expected.iter().collect::<Vec<_>>(), "{memory}");
    assert!(
        remembered[2]["tick"]
            .as_str()
            .unwrap()
            .starts_with(&asked[..19]),
        "{memory}"
    );
    drop(first.shutdown(Duration::ZERO).await);
    drop(second.shutdown(Duration::ZERO).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_never_ran_is_listed_with_its_next_tick_until_no_scheduler_has_it_for_a_week() {
    let nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
    nodes.bless().await;
    let slip = nodes.run(&["jobs", "pause", "billing/closeday"]);
    slip.complained(2, "nothing is remembered");
    let job = SingletonJob::cron("close-day", IN_JULY, "Europe/Berlin", |_: Run| async {
        Ok::<(), BoxError>(())
    });
    let jobs = running(&nodes, "billing", job).await;
    let memory = once(&nodes, "billing/close-day", is_registered).await;
    let next = memory["next_tick"].as_str().unwrap();
    assert!(next.ends_with("-06-30T22:00:00+00:00"), "{memory}");
    let registered = &memory["registered"];
    assert_eq!(registered["pattern"], IN_JULY);
    assert_eq!(registered["zone"], "Europe/Berlin");
    assert_eq!(registered["gone"], false);
    assert_eq!(memory["known"], true);
    let words = |out: &str| out.split_whitespace().collect::<Vec<_>>().join(" ");
    let next = next.replace("+00:00", "Z");
    let listed = words(&nodes.run(&["jobs"]).out);
    let line = format!("billing/close-day idle; next tick {next}; no run is remembered");
    assert_eq!(listed, line);
    let shown = nodes.run(&["jobs", "billing/close-day"]).ended(0);
    for line in [
        "its schedule is 0 0 0 1 7 * in Europe/Berlin: At 00:00, on day 1, in July, in the zone Europe/Berlin",
        "its policies are overlap skip, missed skip, at most once",
        &format!("its next tick is {next}"),
        "no run is remembered",
    ] {
        assert!(words(&shown.out).contains(line), "{line}: {shown:?}");
    }
    nodes.run(&["jobs", "pause", "billing/close-day"]).ended(0);
    drop(jobs.shutdown(Duration::from_secs(5)).await);

    let days = Duration::from_secs(8 * 24 * 60 * 60);
    for node in 0..3 {
        nodes[node].clock().unwrap().advance(days).unwrap();
    }
    let listed = words(&nodes.run(&["jobs"]).out);
    assert_eq!(
        listed,
        "billing/close-day gone, paused; no run is remembered"
    );
    let shown = words(&nodes.run(&["jobs", "billing/close-day"]).out);
    let gone = "it is gone: no replica has registered it since 20";
    assert!(shown.contains(gone), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticks_that_no_replica_claimed_are_among_the_lines() {
    let nodes = Nodes::blessed(3).await;
    let job = || each_second("close-day", Duration::ZERO);
    let jobs = running(&nodes, "billing", job()).await;
    let ran = |memory: &Value| memory["runs"][0]["outcome"] == "ok" && is_registered(memory);
    once(&nodes, "billing/close-day", ran).await;
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    let is_several = |memory: &Value| memory["unclaimed"][0]["ticks"].as_u64() > Some(2);
    let memory = once(&nodes, "billing/close-day", is_several).await;
    let ticks = &memory["unclaimed"][0];
    assert_eq!(ticks["not_started"], "no replica claimed it");
    let jobs = running(&nodes, "billing", job()).await;
    // The end drops a run that has been claimed and not begun.
    let runs_again = |after: &Value| {
        let run = &after["runs"][0];
        run["tick"].as_str() > ticks["last"].as_str() && run["outcome"] == "ok"
    };
    once(&nodes, "billing/close-day", runs_again).await;
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    let shown = nodes.run(&["jobs", "billing/close-day"]).out;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = ticks["first"].as_str().unwrap().replace("+00:00", "Z");
    let line = format!("ticks from {first} to");
    let at = |words_of: &str| {
        words
            .find(words_of)
            .unwrap_or_else(|| panic!("{words_of}: {shown}"))
    };
    let gap = at(&line);
    assert!(
        words[gap..].contains("not started, no replica claimed it"),
        "{shown}"
    );
    // Between the run before and the run after, the newest first.
    let before = words[gap..].find(": ok after");
    assert!(
        words[..gap].contains(": ok after") && before.is_some(),
        "{shown}"
    );
}

#[tokio::test]
async fn a_trigger_that_no_replica_picks_up_expires_and_the_command_says_so() {
    let nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "close-day").await;
    let done = nodes.run(&["jobs", "trigger", "billing/close-day"]);
    done.told(1, "no replica has started it within 1 min");
}

#[tokio::test]
async fn a_trigger_without_a_majority_is_told_as_that() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].kill().unwrap();
    nodes[1].kill().unwrap();
    nodes
        .run(&["jobs", "trigger", "billing/close-day"])
        .ended(3);
}

/// The replica is cut off as by a crash: nothing records the end of its run, and its lease is not released.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_triggered_run_that_a_crash_cuts_short_is_told_when_its_lease_is_over() {
    let nodes = Nodes::blessed(3).await;
    let (tell, begun) = channel();
    let work = move |_: Run| {
        tell.send(()).unwrap();
        std::future::pending::<Result<(), BoxError>>()
    };
    let job = SingletonJob::cron("close-day", IN_JULY, "UTC", work);
    let relays: Vec<_> = nodes.iter().map(|node| Relay::to(node.address())).collect();
    let client = Redlock::builder().nodes(relays.iter().map(Relay::url));
    let client = client.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await.unwrap();
    let jobs = running_by(client, "billing", job).await;
    once(&nodes, "billing/close-day", is_registered).await;
    let done = tokio::task::block_in_place(|| {
        let arguments = ["jobs", "trigger", "billing/close-day", "--wait"];
        thread::scope(|scope| {
            let command = scope.spawn(|| nodes.run(&arguments));
            begun.recv_timeout(Duration::from_secs(120)).unwrap();
            relays.iter().for_each(Relay::cut);
            command.join().unwrap()
        })
    });
    done.told(2, "it was cut short");
    drop(jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_runs_each_tick_of_its_range_once_and_the_exit_code_says_how() {
    let nodes = Nodes::blessed(3).await;
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let job = || {
        let ticks = Arc::clone(&ticks);
        let work = move |run: Run| {
            let mut ticks = ticks.lock().unwrap();
            let is_first = ticks.is_empty();
            ticks.push(run.tick().to_rfc3339());
            async move {
                match is_first {
                    true => Err(BoxError::from("no ledger")),
                    false => Ok(()),
                }
            }
        };
        SingletonJob::cron("close-day", IN_JULY, "Europe/Berlin", work)
    };
    let replicas = [
        running(&nodes, "billing", job()).await,
        running(&nodes, "billing", job()).await,
    ];
    once(&nodes, "billing/close-day", is_registered).await;
    let backfill = |from: &str, to: &str, more: &[&str]| {
        let range = ["--from", from, "--to", to];
        nodes.run(&[&["jobs", "backfill", "billing/close-day"], &range[..], more].concat())
    };
    let (from, to) = ("2022-01-01T00:00:00Z", "2024-06-30T22:00:00Z");
    // At midnight in Berlin, the last at the end of the range.
    let expected = ["2022", "2023", "2024"].map(|year| format!("{year}-06-30T22:00:00+00:00"));
    let done = backfill(from, to, &["--wait"]);
    done.complained(2, "3 ticks");
    let [failed, ok] = ["failed", "ok"].map(|outcome| format!("backfill: {outcome} after"));
    assert_eq!(done.out.matches(&*failed).count(), 1, "{done:?}");
    assert_eq!(done.out.matches(&*ok).count(), 2, "{done:?}");
    assert_eq!(*ticks.lock().unwrap(), expected);
    let done = backfill(from, to, &["--wait", "--json"]);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, &json["ticks"]), (0, &3.into()), "{done:?}");
    let runs = json["runs"].as_array().unwrap();
    let told: Vec<_> = runs
        .iter()
        .map(|run| run["tick"].as_str().unwrap())
        .collect();
    assert_eq!(told, expected, "{json}");
    let outcomes: Vec<_> = runs.iter().map(|run| run["outcome"].as_str()).collect();
    assert_eq!(
        outcomes,
        [Some("ok"), Some("already-ok"), Some("already-ok")]
    );
    assert_eq!(ticks.lock().unwrap().len(), 4);

    let none = backfill("2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z", &["--wait"]);
    none.told(1, "no tick");
    backfill("1990-01-01T00:00:00+01:00", to, &[]).ended(0);
    for replica in replicas {
        drop(replica.shutdown(Duration::from_secs(5)).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_of_days_has_those_of_the_zone_of_the_job() {
    let nodes = Nodes::blessed(3).await;
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&ticks);
    let work = move |run: Run| {
        told.lock().unwrap().push(run.tick().to_rfc3339());
        async { Ok::<(), BoxError>(()) }
    };
    let job = SingletonJob::cron("close-day", IN_JULY, "Europe/Berlin", work);
    let jobs = running(&nodes, "billing", job).await;
    once(&nodes, "billing/close-day", is_registered).await;
    let backfill = |days: &[&str]| {
        let days = days.iter().flat_map(|day| ["--day", day]);
        let days: Vec<_> = days.collect();
        nodes.run(
            &[
                &["jobs", "backfill", "billing/close-day", "--wait"],
                &days[..],
            ]
            .concat(),
        )
    };
    // In UTC, that is a tick of the day before.
    let done = backfill(&["2024-07-01", "2022-07-01", "2023-06-30"]);
    done.complained(0, "2 ticks");
    let expected = ["2022", "2024"].map(|year| format!("{year}-06-30T22:00:00+00:00"));
    assert_eq!(*ticks.lock().unwrap(), expected);
    let once = backfill(&["2024-07-01"]);
    once.told(0, "had ended well");
    assert_eq!(ticks.lock().unwrap().len(), 2);
    for (days, why) in [
        (&["2024-02-30"][..], "not a date like 2026-11-28"),
        (&["2126-07-01"], "in the future"),
        (&["2024-07-01", "--to", "2024-07-02"], "cannot be used with"),
    ] {
        let given = [&["jobs", "backfill", "billing/close-day", "--day"], days].concat();
        let done = nodes.run(&given);
        assert!(done.code == 2 && done.err.contains(why), "{why}: {done:?}");
    }
    let nothing = nodes.run(&["jobs", "backfill", "billing/close-day"]);
    nothing.complained(2, "--day");
    drop(jobs.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_that_cannot_be_is_refused_and_says_why() {
    let nodes = Nodes::blessed(3).await;
    let backfill = |from: &str, to: &str, more: &[&str]| {
        let range = ["--from", from, "--to", to];
        nodes.run(&[&["jobs", "backfill", "billing/close-day"], &range[..], more].concat())
    };
    let (from, to) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let unknown = backfill(from, to, &[]);
    let why = "nothing is remembered of billing/close-day";
    unknown.complained(2, why);
    nodes.pause_job("billing", "close-day").await;
    for (from, to, why) in [
        (to, from, "ends before it begins"),
        (from, "2126-01-01T00:00:00Z", "in the future"),
        (from, "tomorrow", "neither an instant like 20"),
    ] {
        let done = backfill(from, to, &[]);
        assert!(done.code == 2 && done.err.contains(why), "{why}: {done:?}");
    }
    let keys = nodes.keys();
    let is_asked = |key: &String| key.contains("request") || key.contains("bell");
    assert!(!keys.iter().any(is_asked), "{keys:?}");
    let minutes = SingletonJob::cron("close-day", "0 * * * * *", "UTC", |_: Run| async {
        Ok::<(), BoxError>(())
    });
    let jobs = running(&nodes, "billing", minutes.only_if(|_| false)).await;
    let done = backfill(from, to, &[]);
    // A tick of each minute, and both ends.
    let words = "1441 ticks of billing/close-day";
    done.complained(2, words);
    drop(jobs.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_list_of_no_job_says_so() {
    let nodes = Nodes::blessed(1).await;
    let done = nodes.run(&["jobs"]);
    assert_eq!((done.code, &*done.out), (0, ""), "{done:?}");
    assert!(
        done.err
            .contains("remember no job in the namespace redlock"),
        "{done:?}"
    );
    let json = nodes.run(&["jobs", "--json"]);
    assert_eq!((json.out.trim(), &*json.err), ("[]", ""), "{json:?}");
}

/// An operator names the reason, and the next one reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_has_a_reason_and_an_end_and_is_for_all_jobs_that_begin_so() {
    let nodes = Nodes::blessed(3).await;
    for job in ["billing/close-day", "billing/close-month", "mail/send"] {
        let (namespace, name) = job.split_once('/').unwrap();
        nodes.pause_job(namespace, name).await;
        assert_eq!(nodes.run(&["jobs", "resume", job, "--by", "bob"]).code, 0);
    }
    let until = "2999-01-01";
    let words = [
        "--by",
        "alice",
        "--reason",
        "the ledger moves",
        "--until",
        until,
    ];
    let all = [&["jobs", "pause", "billing/*"][..], &words].concat();
    let done = nodes.run(&all);
    done.told(0, "billing/close-day is paused");
    assert!(
        done.out.contains("billing/close-month is paused"),
        "{done:?}"
    );
    let told = nodes.run(&["jobs", "billing/close-month"]);
    let line = "by alice, until 2999-01-01T00:00:00Z: the ledger moves";
    assert!(told.out.replace('\n', " ").contains(line), "{told:?}");
    let json = |job: &str| -> Value {
        serde_json::from_str(&nodes.run(&["jobs", job, "--json"]).out).unwrap()
    };
    assert_eq!(
        json("billing/close-day")["pause"]["reason"],
        "the ledger moves"
    );
    assert_eq!(json("mail/send")["pause"], Value::Null);
    let none = nodes.run(&["jobs", "pause", "bill/*"]);
    none.complained(2, "no job is known that begins with bill/");
    nodes.pause_job("mail", "send").await;
    let over = nodes.run(&["jobs", "pause", "mail/send", "--until", "2020-01-01"]);
    over.complained(2, "the end of the pause is over");
    // Another pause takes the place of the one before, and the end of none is not called one.
    let again = nodes.run(&["jobs", "pause", "billing/close-month"]);
    again.told(0, "before, it was paused since");
    assert_eq!(nodes.run(&["jobs", "resume", "billing/*"]).code, 0);
    assert_eq!(json("billing/close-day")["paused"], false);
    let none = nodes.run(&["jobs", "resume", "billing/close-day"]);
    none.told(0, "nothing was done: billing/close-day was not paused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_stopped_and_a_backfill_cancelled_by_the_command() {
    let nodes = Nodes::blessed(3).await;
    let jobs = SingletonScheduler::standalone(nodes.client().await);
    let jobs = jobs.namespace("billing").build().unwrap();
    let hour = Duration::from_secs(3_600);
    let endless = SingletonJob::every("sweep", hour, |_: Run| async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok::<(), BoxError>(())
    });
    jobs.add(endless).await.unwrap();
    jobs.start().await.unwrap();
    let backfill = [
        "--from",
        "2026-11-01T00:00:00Z",
        "--to",
        "2026-11-01T09:00:00Z",
    ];
    once(&nodes, "billing/sweep", is_registered).await;
    nodes
        .run(&[&["jobs", "backfill", "billing/sweep"][..], &backfill].concat())
        .ended(0);
    let json = || -> Value {
        serde_json::from_str(&nodes.run(&["jobs", "billing/sweep", "--json"]).out).unwrap()
    };
    once(&nodes, "billing/sweep", |memory| {
        memory["running_on"].is_string()
    })
    .await;
    let cancelled = nodes
        .run(&["jobs", "cancel", "billing/sweep", "--reason", "wrong range"])
        .ended(0);
    let words = cancelled
        .out
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(words.contains("1 of 10 were claimed"), "{words}");
    let stop = [
        "jobs",
        "stop",
        "billing/sweep",
        "--by",
        "alice",
        "--reason",
        "wrong range",
    ];
    nodes.run(&stop).ended(0);
    once(&nodes, "billing/sweep", |memory| {
        memory["running_on"].is_null()
    })
    .await;
    let memory = json();
    let runs = memory["runs"].as_array().unwrap().iter();
    let backfilled: Vec<_> = runs.filter(|run| run["backfill"] == true).collect();
    let [run] = *backfilled else {
        panic!("{memory}")
    };
    assert_eq!(run["outcome"], "cancelled");
    assert_eq!(run["note"], "stopped by alice: wrong range");
    assert!(jobs.shutdown(Duration::from_secs(1)).await.is_clean());
}
