//! Ten thousand keys and a thousand jobs, with names that take as much room as names can.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use redlock_console::{
    Access, Console,
    look::{
        sample::{Sampler, SamplerOptions},
        settings::NodeSettings,
    },
    router,
};
use redlock_core::Redlock;
use redlock_sandbox::{Server, ServerOptions, ServerSet};

use tokio::task::JoinSet;

use crate::kit::{Events, get, servers};

const KEYS: usize = 10_000;
const JOBS: usize = 1_000;

/// Writes the keys of holders that are no clients, all in one go.
fn fill(server: &Server, name: impl Fn(usize) -> String, holder: &str) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut commands = String::new();
    for number in 0..KEYS {
        let key = format!("{{redlock}}:lock:{}", name(number));
        let secret = format!("{number:032x} {holder}");
        let (key_len, secret_len) = (key.len(), secret.len());
        commands.push_str(&format!(
            "*5\r\n$3\r\nSET\r\n${key_len}\r\n{key}\r\n${secret_len}\r\n{secret}\r\n$2\r\nPX\r\n$6\r\n600000\r\n"
        ));
    }
    let mut writer = stream.try_clone().unwrap();
    let written = std::thread::spawn(move || writer.write_all(commands.as_bytes()).unwrap());
    let mut answers = vec![0; "+OK\r\n".len() * KEYS];
    stream.read_exact(&mut answers).unwrap();
    written.join().unwrap();
}

async fn filled(holder: &str, name: impl Fn(usize) -> String + Copy) -> (ServerSet, Redlock) {
    let (servers, client) = servers(3, &ServerOptions::default()).await;
    for server in servers.iter() {
        fill(server, name, holder);
    }
    (servers, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_and_its_events_stay_small_whatever_there_is() {
    let hostile = "<\"'&".repeat(64 / 4);
    let long = |number: usize| format!("{number:05}{}", "<\"'&".repeat(500 / 4));
    let (_servers, client) = filled(&hostile, long).await;
    for number in 0..JOBS {
        let name = format!("{number:03}{}", "<".repeat(20));
        redlock_cron::pause(&client, "billing", &name)
            .await
            .unwrap();
    }
    let console = Console::builder(client)
        .access(|_| Access::Operate)
        .build()
        .unwrap();
    let routes = router(console);
    let page = get(&routes, "/overview").await.text;
    assert!(page.len() <= 150_000, "{}", page.len());
    let snapshot = get(&routes, "/snapshot").await.snapshot();
    assert_eq!((snapshot.keys_total, snapshot.jobs_total), (KEYS, JOBS));
    assert!(!snapshot.keys.is_empty() && snapshot.keys.len() <= 200);
    assert!(!snapshot.jobs.is_empty() && snapshot.jobs.len() <= 100);
    let mut events = Events::open(&routes, "/events").await;
    let mut sections = 0;
    while sections < 7 {
        let event = events.next().await.unwrap();
        assert!(event.len() <= 100_000, "{}", event.len());
        let event: serde_json::Value = serde_json::from_str(&event).unwrap();
        sections += event["html"].as_object().unwrap().len();
    }
    // The others are there for a search.
    let found = get(&routes, "/snapshot?q=09999").await.snapshot();
    assert_eq!(found.keys.len(), 1);
    assert_eq!(
        get(&routes, "/snapshot?q=999").await.snapshot().jobs.len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_keys_of_ten_thousand_are_on_the_page_and_the_most_contended_first() {
    let (_servers, client) = filled("order@web-7:4312", |number| format!("order:{number}")).await;
    let patient =
        redlock_core::AcquireOptions::new().wait(redlock_core::Wait::UpTo(Duration::from_secs(60)));
    let mut waiting = JoinSet::new();
    let waits = client.clone();
    waiting.spawn(async move { drop(waits.acquire_with("order:7777", patient).await) });
    let routes = router(Console::builder(client).build().unwrap());
    let end = std::time::Duration::from_secs(60);
    let first = tokio::time::timeout(end, async {
        loop {
            let snapshot = get(&routes, "/snapshot").await.snapshot();
            assert_eq!((snapshot.keys.len(), snapshot.keys_total), (200, KEYS));
            if snapshot.keys[0]
                .line
                .as_ref()
                .is_some_and(|line| line.callers == 1)
            {
                break snapshot.keys[0].key.clone();
            }
        }
    });
    assert_eq!(first.await.unwrap(), "order:7777");
    assert!(get(&routes, "/overview").await.text.len() <= 150_000);
}

#[tokio::test]
async fn of_more_keys_than_are_looked_at_the_first_by_name_are_those_of_all_nodes() {
    let (servers, client) = servers(3, &ServerOptions::default()).await;
    for (node, server) in servers.iter().enumerate() {
        for number in 0..40 {
            let key = format!("{{redlock}}:lock:order:{number:02}");
            let holder = format!("{number:032x} order@web-7:4312");
            server
                .command(&["SET", &key, &holder, "PX", "600000"])
                .unwrap();
            // Other names before them on one node alone.
            let key = format!("{{redlock}}:lock:a:{number:02}");
            if node == 1 && number < 5 {
                server
                    .command(&["SET", &key, &holder, "PX", "600000"])
                    .unwrap();
            }
        }
    }
    let settings = NodeSettings::new(client.config().clone()).unwrap();
    let mut options = SamplerOptions::default();
    options.most_keys = 10;
    let seen = Sampler::new(client, settings, options).look().await;
    let held: Vec<_> = seen.keys.iter().filter(|key| key.held).collect();
    let names: Vec<_> = held.iter().map(|key| &*key.key).collect();
    // The tenth of the node with most: what is behind it is not known of all nodes.
    assert_eq!(
        names,
        ["order:00", "order:01", "order:02", "order:03", "order:04"]
    );
    assert!(held.iter().all(|key| key.votes == 3), "{held:?}");
    assert_eq!(seen.keys_total, 10);
}
