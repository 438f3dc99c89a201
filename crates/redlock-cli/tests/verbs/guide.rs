//! `guide` prints what is in `docker/`, and all waits in it follow from the longest lease.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
};

use redlock_core::node::RedisNode;
use redlock_sandbox::ServerBinary;
use tempfile::TempDir;

use crate::kit::{UNHURRIED, eventually, redlock, run};

/// The files that `guide` prints, by their paths.
fn guide(arguments: &[&str]) -> BTreeMap<String, String> {
    let done = run(&mut redlock(&[&["guide"], arguments].concat())).ended(0);
    let files = done.out.split("# ==> ").skip(1);
    let pair = |file: &str| {
        file.split_once('\n')
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
    };
    files.filter_map(pair).collect()
}

#[test]
fn what_is_printed_is_what_is_in_the_repository() {
    let mut seen = 0;
    for arguments in [
        &["systemd", "--delayed"][..],
        &["compose", "--delayed", "--metrics"],
        &["kubernetes"],
    ] {
        for (path, text) in guide(arguments) {
            let file = fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR")));
            assert_eq!(file.unwrap(), text, "{path}: redlock guide prints it");
            seen += 1;
        }
    }
    assert_eq!(seen, 17);
}

#[test]
fn the_files_are_written_below_a_folder_if_one_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let done = run(&mut redlock(&[
        "guide",
        "systemd",
        "--namespace",
        "billing",
        "--dir",
        dir,
    ]));
    assert_eq!((done.code, &*done.out), (0, ""), "{done:?}");
    let printed = guide(&["systemd", "--namespace", "billing"]);
    assert!(printed.len() > 4, "{printed:?}");
    for (path, text) in printed {
        assert_eq!(
            fs::read_to_string(folder.path().join(&path)).unwrap(),
            text,
            "{path}"
        );
    }
    let refused = run(&mut redlock(&["guide", "systemd", "--dir", "/dev/null"]));
    refused.complained(2, "/dev/null/docker");
}

#[test]
fn every_file_that_a_composition_mounts_is_printed_with_it() {
    let files = guide(&["compose", "--delayed", "--metrics"]);
    let mut mounted = 0;
    for composition in ["docker/compose.yaml", "docker/compose.delayed.yaml"] {
        for line in files[composition].lines() {
            let Some(mount) = line.trim().strip_prefix("- ./") else {
                continue;
            };
            let file = mount.split(':').next().unwrap();
            assert!(
                files.contains_key(&format!("docker/{file}")),
                "{composition}: {file}"
            );
            mounted += 1;
        }
    }
    assert_eq!(mounted, 8);
}

/// The number behind the first of these words.
fn number(text: &str, words: &str) -> u64 {
    let (_, rest) = text
        .split_once(words)
        .unwrap_or_else(|| panic!("{words}: {text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn all_waits_follow_from_the_longest_lease() {
    // With 13 and 65 s, one wait is what another one is by default.
    for ttl in [1, 13, 30, 65, 3_600] {
        let lease = format!("{ttl}s");
        // 2 % and two steps of at most a second, or 1 %, 2 ms and a second.
        let (quarantine, absence) = (ttl * 51 / 50, ttl * 101 / 100 + 1);
        let arguments = ["--max-ttl", &lease, "--namespace", "billing"];
        let files = guide(&[&["compose", "--delayed"], &arguments[..]].concat());
        let (compose, delayed) = (
            &files["docker/compose.yaml"],
            &files["docker/compose.delayed.yaml"],
        );
        for text in [compose, delayed] {
            assert_eq!(number(text, "REDLOCK_MAX_TTL: \""), ttl);
            // What the comments say follows too.
            assert!(ttl == 30 || !text.contains("30 s"), "{ttl}: {text}");
            assert!(!text.contains("minute"), "{ttl}: {text}");
        }
        assert!(compose.contains(&format!("until leases of {ttl} s would be")));
        assert!(
            (quarantine + 2..quarantine + 20).contains(&number(compose, "start_period: ")),
            "{ttl}"
        );
        let both = quarantine + absence;
        assert!(
            (both + 2..both + 30).contains(&number(delayed, "start_period: ")),
            "{ttl}"
        );
        assert!(compose.contains("\"/usr/local/bin/votes.sh\", \"billing\"]"));

        let files = guide(&[&["systemd", "--delayed"], &arguments[..]].concat());
        let unit = &files["docker/systemd/delayed.conf"];
        let sleep = number(unit, "/bin/sleep ");
        assert!((absence..=absence + 1).contains(&sleep), "{ttl}: {sleep}");
        assert!(number(unit, "TimeoutStartSec=") > sleep);

        let environment = &files["docker/systemd/environment"];
        assert!(environment.contains("\nREDLOCK_NAMESPACE=billing\n"));
        assert!(environment.contains(&format!("\nREDLOCK_MAX_TTL={ttl}s\n")));
        // Without it, no client could start.
        let has_ttl = ttl < 10;
        let line = format!("\nREDLOCK_TTL={ttl}s\n");
        assert_eq!(environment.contains(&line), has_ttl, "{ttl}: {environment}");
        let line = format!("\n  REDLOCK_TTL: \"{ttl}s\"\n");
        assert_eq!(compose.contains(&line), has_ttl, "{ttl}: {compose}");
        assert!(!delayed.contains("REDLOCK_TTL"));

        let files = guide(&[&["kubernetes"], &arguments[..]].concat());
        let manifests = &files["docker/kubernetes/redlock.yaml"];
        assert!(
            number(manifests, "minReadySeconds: ") >= quarantine + 2,
            "{ttl}"
        );
        assert!(manifests.contains("votes.sh\", \"billing\"]"));
    }
}

#[test]
fn the_namespace_is_that_of_the_clients_unless_another_is_given() {
    let manifests = &guide(&["kubernetes"])["docker/kubernetes/redlock.yaml"];
    assert!(manifests.contains("votes.sh\", \"redlock\"]"));
    let compose = &guide(&["compose"])["docker/compose.yaml"];
    assert!(compose.contains("votes.sh\", \"demo\"]"));
    let other = &guide(&["compose", "--namespace", "redlock"])["docker/compose.yaml"];
    assert!(other.contains("votes.sh\", \"redlock\"]") && !other.contains("\"demo\""));
}

/// It would lock keys in the namespace of the clients.
#[test]
fn a_composition_for_a_namespace_has_all_but_the_demo() {
    let (with, without) = (
        &guide(&["compose"])["docker/compose.yaml"],
        &guide(&["compose", "--namespace", "redlock"])["docker/compose.yaml"],
    );
    assert!(!without.contains("demo"), "{without}");
    let services = |text: &str| {
        let (_, services) = text.split_once("\nservices:\n").unwrap();
        let named = services.lines().filter_map(|line| line.strip_prefix("  "));
        let named = named.filter(|line| !line.starts_with([' ', '#']) && !line.is_empty());
        named.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut expected = services(with);
    expected.retain(|service| service != "demo:");
    assert_eq!(services(without), expected);
    assert_eq!(expected.len(), 8);
    // The comment in front of the next service is still there, and nothing stands twice.
    assert!(without.contains("    hostname: redis-5\n\n  # Looks at the masters"));
}

#[test]
fn what_cannot_be_is_refused() {
    for arguments in [
        &["guide"][..],
        &["guide", "nomad"],
        &["guide", "systemd", "--max-ttl", "30"],
        &["guide", "systemd", "--max-ttl", "1ms"],
        &["guide", "compose", "--namespace", "a\"b"],
        &["guide", "kubernetes", "--delayed"],
        &["guide", "systemd", "--metrics"],
        &["guide", "access", "--delayed"],
    ] {
        assert_eq!(run(&mut redlock(arguments)).code, 2, "{arguments:?}");
    }
}

#[test]
fn the_guide_names_all_rights_of_the_library_for_services_and_for_operators() {
    let files = guide(&["access", "--namespace", "billing"]);
    let text = &files["docker/access.conf"];
    let users = text.lines().filter(|line| line.starts_with("user "));
    let users: Vec<Vec<&str>> = users.map(|line| line.split(' ').collect()).collect();
    let [default, services, operators] = &*users else {
        panic!("{text}");
    };
    assert_eq!(*default, ["user", "default", "off"]);
    let rights = [
        RedisNode::RIGHTS,
        RedisNode::RIGHTS_FOR_TRANSACTIONS,
        RedisNode::RIGHTS_FOR_LINES,
    ];
    let rights = rights.iter().flat_map(|rights| rights.split(' '));
    let rights: Vec<&str> = ["~{billing}:*", "&{billing}:wake:*", "-@all"]
        .into_iter()
        .chain(rights)
        .collect();
    assert!(services.ends_with(&rights), "{services:?}");
    for right in rights.iter().chain(&["+scan"]) {
        assert!(operators.contains(right), "{right}: {operators:?}");
    }
    assert!(!text.contains("{redlock}:*"), "{text}");
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A server with the files of the guide.
struct Guided(Child);

impl Guided {
    fn start(folder: &Path, address: SocketAddr) -> Self {
        let server = ServerBinary::find().expect("this test needs a server");
        let child = Command::new(server.path())
            .arg(folder.join("redis.conf"))
            .arg("--include")
            .arg(folder.join("access.conf"))
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Guided {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn servers_with_the_users_of_the_guide_refuse_strangers_and_serve_services_and_operators() {
    let folders: Vec<TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let files = guide(&["systemd", "--namespace", "billing", "--max-ttl", "2s"]);
    let write = |folder: &TempDir, hash: &str| {
        let access = files["docker/access.conf"].replace("#HASH_OF_ITS_PASSWORD", hash);
        fs::write(folder.path().join("access.conf"), access).unwrap();
        let redis = folder.path().join("redis.conf");
        fs::write(redis, &files["docker/redis.conf"]).unwrap();
    };
    // As it is printed, no server starts with it: there is no password that everybody knows.
    write(&folders[0], "#HASH_OF_ITS_PASSWORD");
    let mut unedited = Guided::start(folders[0].path(), free_address());
    assert!(!unedited.0.wait().unwrap().success());

    // Of `pw`.
    let hash = "#30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    let addresses: Vec<_> = folders.iter().map(|_| free_address()).collect();
    let mut servers = Vec::new();
    for (folder, address) in folders.iter().zip(&addresses) {
        write(folder, hash);
        servers.push(Guided::start(folder.path(), *address));
    }
    let command = |user: &str, arguments: &[&str]| {
        let urls = addresses
            .iter()
            .map(|address| format!("redis://{user}{address}"));
        let urls: Vec<String> = urls.collect();
        let mut command = redlock(arguments);
        let command = command
            .env("REDLOCK_NODES", urls.join(","))
            .env("REDLOCK_TTL", "2s");
        let command = command.env("REDLOCK_NODE_TIMEOUT", UNHURRIED);
        run(command
            .env("REDLOCK_NAMESPACE", "billing")
            .env("REDLOCK_MAX_TTL", "2s"))
    };
    eventually("the servers are up", || {
        command("lock:pw@", &["bless", "--yes"]).code == 0
    });
    let stranger = command("", &["doctor"]);
    stranger.told(3, "password");
    for user in ["lock:pw@", "operator:pw@"] {
        for (arguments, code) in [
            (&["status", "a"][..], 1),
            (&["run", "a", "--", "true"], 0),
            (&["leader", "a"], 1),
        ] {
            let done = command(user, arguments);
            assert_eq!(done.code, code, "{user} {arguments:?}: {done:?}");
        }
        let doctor = command(user, &["doctor", "--strict"]).ended(0);
        assert!(!doctor.out.contains("rights"), "{doctor:?}");
    }
    let doctor = command("operator:pw@", &["doctor", "--deep"]);
    assert!(!doctor.out.contains("not verified"), "{doctor:?}");
    for verb in ["ls", "jobs"] {
        assert_eq!(command("operator:pw@", &[verb]).code, 0, "{verb}");
        assert_eq!(command("lock:pw@", &[verb]).code, 2, "{verb}");
    }
}
