use std::{ffi::OsStr, fs, net::TcpListener, path::PathBuf};

use redlock_sandbox::ServerOptions;
use tempfile::TempDir;

use crate::kit::{Done, Examined, Nodes, eventually, redlock, run};

/// Another name of this machine, which is not known to be one.
fn as_from_afar(nodes: &Nodes) -> Vec<String> {
    let urls = nodes.urls().into_iter();
    urls.map(|url| url.replace("127.0.0.1", "127.1")).collect()
}

#[tokio::test]
async fn nodes_on_a_network_without_a_password_or_encryption_are_told_of() {
    let nodes = Nodes::blessed(3).await;
    let urls = as_from_afar(&nodes);
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&[]);
    let found = [examined.found("credentials"), examined.found("plaintext")];
    for (found, words) in found.iter().zip(["warning 127.1:", "note 127.1:"]) {
        assert!(found.len() == 3 && found[0].contains(words), "{found:?}");
    }
    assert!(found[0][0].contains("ACL SETUSER") && found[1][0].contains("rediss://"));
    examined.one("failure-domains", "warning all … 3 nodes are on 127.1");
    assert_eq!(examined.code, 0, "{examined:?}");

    let nodes = Nodes::start_with(3, &ServerOptions::default().password("hunter2"));
    nodes.bless().await;
    let urls = as_from_afar(&nodes);
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&[]);
    let found = examined.found("credentials");
    assert!(
        found.len() == 3 && found[0].contains("note 127.1:"),
        "{found:?}"
    );
    assert!(found[0].contains("as the default user"), "{found:?}");
    assert_eq!(examined.found("plaintext").len(), 3);
}

/// A certificate for these names, and servers that have it.
struct Certified {
    folder: TempDir,
}

impl Certified {
    fn of(names: &[&str]) -> Self {
        let names = names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>();
        let pair = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cert.pem"), pair.cert.pem()).unwrap();
        fs::write(
            folder.path().join("key.pem"),
            pair.signing_key.serialize_pem(),
        )
        .unwrap();
        Self { folder }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// Starts a server that also listens for TLS, at the port that is returned with it.
    fn start(&self, options: ServerOptions) -> (Nodes, u16) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let number = port.to_string();
        let key = self.folder.path().join("key.pem");
        let options = [
            ("--tls-port", OsStr::new(&number)),
            ("--tls-auth-clients", OsStr::new("no")),
            ("--tls-cert-file", self.certificate().as_os_str()),
            ("--tls-ca-cert-file", self.certificate().as_os_str()),
            ("--tls-key-file", key.as_os_str()),
        ]
        .iter()
        .fold(options, |options, (name, value)| {
            options.argument(name).argument(value)
        });
        (Nodes::start_with(1, &options), port)
    }

    /// Runs a verb of the command at this URL.
    fn run(&self, url: &str, arguments: &[&str]) -> Done {
        let mut command = redlock(arguments);
        let command = command
            .env("SSL_CERT_FILE", self.certificate())
            .env("REDLOCK_NODES", url)
            // A handshake takes its time in a build without optimisation.
            .env("REDLOCK_CONNECT_TIMEOUT", "10s")
            .env("REDLOCK_TTL", "2s")
            .env("REDLOCK_MAX_TTL", "2s");
        run(command)
    }

    /// Locks at this URL.
    fn locks(&self, url: &str) {
        eventually("they are blessed", || {
            self.run(url, &["bless", "--yes"]).code == 0
        });
        let locked = self.run(url, &["run", "--wait", "5s", "a", "--", "echo", "locked"]);
        assert_eq!(locked.code, 0, "{url}: {locked:?}");
        assert!(locked.out.contains("locked"), "{url}: {locked:?}");
    }
}

#[test]
fn a_node_is_reached_by_tls_if_its_certificate_is_known() {
    let certified = Certified::of(&["127.0.0.1"]);
    let (_node, port) = certified.start(ServerOptions::default());
    let url = format!("rediss://127.0.0.1:{port}");
    certified.locks(&url);
    let known = Examined::of(&certified.run(&url, &["doctor", "--json"]));
    assert_eq!(
        (known.code, &known.json["votes"]),
        (0, &1.into()),
        "{known:?}"
    );
    let unknown = Certified::of(&["127.0.0.1"])
        .run(&url, &["doctor", "--json"])
        .ended(3);
    Examined::of(&unknown).one("reachable", "failure");
}

/// The certificate has no address, so the host names in `CLUSTER NODES` count.
#[test]
fn a_cluster_is_reached_by_tls_at_the_names_that_it_announces() {
    let certified = Certified::of(&["localhost"]);
    let options = [
        "--tls-cluster",
        "yes",
        "--cluster-announce-hostname",
        "localhost",
    ]
    .iter()
    .fold(
        ServerOptions::default().cluster_node(),
        |options, argument| options.argument(argument),
    );
    let nodes: Vec<_> = (0..3).map(|_| certified.start(options.clone())).collect();
    let info = |node: &Nodes| node.ask(0, &["CLUSTER", "INFO"]);
    for (at, (node, _)) in nodes.iter().enumerate() {
        let (first, last) = (at * 16_384 / 3, (at + 1) * 16_384 / 3 - 1);
        let (first, last) = (first.to_string(), last.to_string());
        node.ask(0, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        node.ask(0, &["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
    }
    for (node, port) in &nodes[1..] {
        let bus = node[0].command(&["CONFIG", "GET", "cluster-port"]).unwrap();
        let bus = bus.as_array().unwrap()[1].as_text().unwrap();
        nodes[0]
            .0
            .ask(0, &["CLUSTER", "MEET", "127.0.0.1", &port.to_string(), bus]);
    }
    let is_ready = |(node, _): &(Nodes, u16)| {
        let info = info(node);
        info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
    };
    eventually("they are a Cluster", || nodes.iter().all(is_ready));
    let at = |(_, port): &(Nodes, u16)| format!("localhost:{port}");
    let hosts = nodes.iter().map(at).collect::<Vec<_>>().join(",");
    certified.locks(&format!("rediss+cluster://{hosts}"));
    certified.locks(&format!("rediss+cluster://{hosts}?votes=3"));
}

#[test]
fn a_master_is_reached_by_tls_through_sentinels_with_tls_and_without() {
    let certified = Certified::of(&["127.0.0.1"]);
    let (_master, port) = certified.start(ServerOptions::default());
    let options = ServerOptions::default().sentinel();
    let (sentinel, secure) = certified.start(options.argument("--tls-replication").argument("yes"));
    sentinel.ask(
        0,
        &[
            "SENTINEL",
            "MONITOR",
            "orders",
            "127.0.0.1",
            &port.to_string(),
            "1",
        ],
    );
    eventually("it watches the master", || {
        let master = sentinel.ask(0, &["INFO", "sentinel"]);
        master.contains("name=orders,status=ok")
    });
    let plain = sentinel[0].address();
    certified.locks(&format!("rediss+sentinel://127.0.0.1:{secure}/orders"));
    certified.locks(&format!("rediss+sentinel://{plain}/orders?sentinel_tls=no"));
}
