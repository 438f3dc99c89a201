//! Addresses at which something else answers than a master that takes connections: the line of each says what to do.
//!
//! All of it is real: servers in that state, and a listener for what is no Redis at all.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use redlock_core::{NodeAnswer, Redlock};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

const SOON: Duration = Duration::from_secs(10);

fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}

fn start(arguments: &[&str]) -> Server {
    let options = arguments
        .iter()
        .fold(ServerOptions::default(), |options, argument| {
            options.argument(argument)
        });
    Server::start(&binary(), options).unwrap()
}

/// Returns what a client says of the node at this URL, once it has tried to reach it more than once.
async fn line(url: &str) -> String {
    let error = Redlock::builder().node(url).build().await.unwrap_err();
    let lazy = Redlock::builder().node(url).connect_lazily();
    let redlock = lazy.build().await.unwrap();
    let tried = async {
        loop {
            let report = redlock.node_reports().await.swap_remove(0);
            match report.answer {
                NodeAnswer::NotExecuted { reason } => return reason,
                NodeAnswer::Pending => tokio::time::sleep(Duration::from_millis(10)).await,
                other => panic!("{other}"),
            }
        }
    };
    let reason = tokio::time::timeout(SOON, tried).await.unwrap();
    redlock.close().await;
    let line = error.reports()[0].to_string();
    assert!(line.ends_with(&*reason), "{line}, and then {reason}");
    line
}

/// Returns a port at which every connection gets this answer to what it sends first.
fn answers(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the process, as the listener does.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A client that hangs up gets no answer.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
        }
    });
    port
}

#[tokio::test]
async fn an_http_port_is_told_to_be_one() {
    let port = answers(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    let line = line(&format!("redis://127.0.0.1:{port}")).await;
    assert!(line.contains("HTTP server"), "{line}");
}

#[tokio::test]
async fn a_tls_port_is_told_to_want_another_url() {
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    fs::write(&certificate, certified.cert.pem()).unwrap();
    fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let mut arguments = vec!["--tls-port", &port, "--tls-cert-file", certificate];
    arguments.extend(["--tls-key-file", key, "--tls-ca-cert-file", certificate]);
    let _server = start(&arguments);
    let said = line(&format!("redis://127.0.0.1:{port}")).await;
    assert!(said.contains("rediss://"), "{said}");
    #[cfg(feature = "tls-rustls")]
    {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let said = line(&format!("rediss://localhost:{port}")).await;
        assert!(said.contains("SSL_CERT_FILE"), "{said}");
    }
}

#[cfg(feature = "tls-rustls")]
#[tokio::test]
async fn a_port_without_tls_is_told_to_want_another_url() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = start(&[]);
    let line = line(&server.url().replace("redis://", "rediss://")).await;
    assert!(line.contains("redis://"), "{line}");
}

#[tokio::test]
async fn a_cluster_without_slots_is_told_to_be_one() {
    let server = start(&["--cluster-enabled", "yes"]);
    let line = line(&server.url()).await;
    assert!(line.contains("redis+cluster://"), "{line}");
}

#[tokio::test]
async fn a_server_with_as_many_clients_as_it_takes_is_told_to_have_them() {
    let server = start(&["--maxclients", "1"]);
    // The server may still count the connection by which its start was noticed.
    let _first = loop {
        let mut first = TcpStream::connect(server.address()).unwrap();
        first.write_all(b"PING\r\n").unwrap();
        let mut answer = [0; 7];
        first.read_exact(&mut answer).unwrap();
        if answer == *b"+PONG\r\n" {
            break first;
        }
    };
    let line = line(&server.url()).await;
    assert!(line.contains("maxclients"), "{line}");
}

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command, address: (&str, u16)) -> Self {
        let running = Self(command.stdout(Stdio::null()).spawn().unwrap());
        while TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_sentinel_is_told_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sentinel.conf");
    fs::write(&config, "bind 127.0.0.1\n").unwrap();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new(binary().path());
    command
        .arg(&config)
        .args(["--sentinel", "--port", &port.to_string()]);
    let _sentinel = Running::start(&mut command, ("127.0.0.1", port));
    let line = line(&format!("redis://127.0.0.1:{port}")).await;
    assert!(line.contains("it is a Sentinel"), "{line}");
}

#[tokio::test]
async fn the_two_loopback_addresses_are_two_nodes() {
    let of_version_4 = start(&[]);
    let port = of_version_4.port();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary().path());
    command.args(["--bind", "::1", "--port", &port.to_string()]);
    command.args(["--save", "", "--dir"]).arg(folder.path());
    let _of_version_6 = Running::start(&mut command, ("::1", port));
    let urls = ["127.0.0.1", "[::1]"].map(|host| format!("redis://{host}:{port}"));
    let redlock = Redlock::builder().nodes(urls).build().await.unwrap();
    let reports = redlock.dangerous_bless().await;
    let names = reports
        .iter()
        .map(|report| &*report.node)
        .collect::<Vec<_>>();
    assert_eq!(
        names,
        [format!("127.0.0.1:{port}"), format!("[::1]:{port}")]
    );
    // Each of them is needed.
    let guard = redlock.acquire("resource").await.unwrap();
    guard.release().await.unwrap();
}
