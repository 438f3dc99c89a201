//! The code in the README compiles: it stands here again, and a test compares the two.

#![expect(
    dead_code,
    reason = "what the README shows is compiled here and run by the crates' own examples"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use redlock_tests::{Nodes, builder};
use rustix::process::{Pid, Signal, kill_process};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn close_books(_: redlock_cron::chrono::NaiveDate) -> Result<(), BoxError> {
    Ok(())
}

async fn a_job(redlock: redlock_core::Redlock) -> Result<(), BoxError> {
    use redlock_cron::{Run, SingletonJob, SingletonScheduler, chrono_tz::Europe::Berlin};

    let jobs = SingletonScheduler::standalone(redlock)
        .namespace("billing")
        .build()?;
    let close_day = SingletonJob::cron("close-day", "0 0 2 * * *", Berlin, |run: Run| async move {
        close_books(run.local_date()).await // returns a `Result`; dropped if its lease is lost
    });
    jobs.add(close_day).await?;
    jobs.start().await?;
    // When the process is asked to end: no new run starts, and those in flight get half a minute.
    let report = jobs.shutdown(Duration::from_secs(30)).await;
    drop(report);
    Ok(())
}

async fn send_report() -> usize {
    1
}

async fn anything_else(redlock: redlock_core::Redlock) -> Result<(), BoxError> {
    #[rustfmt::skip] // one line there
    let guard = redlock.acquire_all(["account:7", "account:9"]).await?; // or acquire("report")
    let sent = guard.run(send_report()).await?; // dropped if the lease is lost
    guard.release().await?; // or drop the guard
    #[rustfmt::skip] // one line there
    let slot = redlock.slots("exports", 4)?.acquire().await?; // at most four at once, on all replicas
    #[rustfmt::skip] // one line there
    let report = redlock.acquire_shared("accounts").await?; // readers together, writers alone
    assert!(report.is_held());
    assert_eq!((sent, slot.slot() < 4), (1, true));
    Ok(())
}

#[test]
fn every_line_of_code_in_the_readme_is_compiled_here() {
    // White space aside: what is one line there may be laid out otherwise here.
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let here = [
        include_str!("readme.rs"),
        include_str!("../../src/bin/readme.rs"),
    ];
    let here = here.map(squeeze).concat();
    let readme = include_str!("../../../README.md");
    let blocks: Vec<_> = readme.split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 3);
    for line in blocks
        .iter()
        .filter_map(|block| block.split("```").next())
        .flat_map(str::lines)
    {
        assert!(
            here.contains(&squeeze(line)),
            "the README has a line of its own: {line}"
        );
    }
}

#[tokio::test]
async fn the_program_of_the_readme_runs_as_it_is_with_the_variables_of_the_sandbox_and_ends_in_order()
 {
    let nodes = Nodes::start(3);
    // It vouches for the nodes, as the sandbox does.
    let max_ttl = Duration::from_secs(10);
    let vouching = builder(nodes.urls(), max_ttl).max_ttl(max_ttl);
    vouching.build().await.unwrap().dangerous_bless().await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_redlock-test-readme"))
        .env("REDLOCK_NODES", nodes.urls().join(","))
        .env("REDLOCK_MAX_TTL", "10s")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = program.stderr.take().unwrap();
    BufReader::new(said).read_line(&mut line).unwrap();
    let address = line
        .split("http://")
        .nth(1)
        .unwrap_or_else(|| panic!("{line}"));
    let (address, path) = address.trim().split_once('/').unwrap();
    let answer = post(address, path);
    kill_process(Pid::from_child(&program), Signal::TERM).unwrap();
    // In order, and not by the signal.
    assert!(program.wait().unwrap().success());
    assert!(nodes.ask_all(&["KEYS", "*lock:*"]).concat().is_empty());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("order 7 is paid, with "), "{answer}");
}

/// Sends a request without a body, and returns the answer.
pub(crate) fn post(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
