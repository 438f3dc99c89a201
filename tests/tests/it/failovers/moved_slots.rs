//! A slot whose move is given up: some of its keys have gone, and its mark has not.

use std::time::Duration;

use redlock_core::{AcquireOptions, Renewal};
use redlock_sandbox::{Server, Value};
use redlock_tests::{ClusterNodes, within};
use tokio::time::sleep;

use super::{FOLLOWED, assert_held_alone, clients, lock_and_release};

// Shows: R7.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_stays_after_keys_have_gone_grants_no_key_that_is_held() {
    let longest = Duration::from_secs(8);
    let nodes = ClusterNodes::start(3);
    let urls = || vec![nodes.url()];
    let [one, other] = clients([urls(), urls()], longest).await;
    lock_and_release(&one).await;
    lock_and_release(&other).await;
    // A renewal would learn that the key has gone.
    let options = AcquireOptions::new().renewal(Renewal::Manual);
    let held = one.acquire_with("a", options).await.unwrap();
    let owner = nodes.owner(TAG);
    let to = nodes.another_master(&[TAG.to_owned()]);
    let [from, to] = [owner, to].map(|port| nodes.at(port));
    let [from_id, to_id] = [from, to].map(|it| text(it, &["CLUSTER", "MYID"]));
    let slot = from.command(&["CLUSTER", "KEYSLOT", TAG]).unwrap();
    let slot = slot.as_integer().unwrap().to_string();
    text(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    text(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    // A client looks once a second; a move that it cannot see is the operator's to avoid.
    sleep(Duration::from_millis(2_500)).await;
    let keys = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "99"]);
    let keys = keys.unwrap();
    let keys = keys.as_array().unwrap().iter().filter_map(Value::as_text);
    let locks: Vec<&str> = keys.filter(|key| key.contains(":lock:")).collect();
    assert_eq!(locks.len(), 1, "{locks:?}");
    let port = to.port().to_string();
    let migrate = [
        "MIGRATE",
        "127.0.0.1",
        &port,
        "",
        "0",
        "5000",
        "KEYS",
        locks[0],
    ];
    assert_eq!(text(from, &migrate), "OK");
    for server in [to, from] {
        text(server, &["CLUSTER", "SETSLOT", &slot, "STABLE"]);
    }
    assert_held_alone(&held, &[&other], FOLLOWED).await;
    within("the end of a lease", FOLLOWED, held.lost()).await;
    lock_and_release(&other).await;
}

fn text(server: &Server, command: &[&str]) -> String {
    let answer = server.command(command).unwrap();
    answer.as_text().unwrap().to_owned()
}

/// The hash tag of the default namespace.
const TAG: &str = "{redlock}";
