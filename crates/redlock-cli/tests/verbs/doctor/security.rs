use std::{fs, net::TcpListener};

use redlock_sandbox::ServerOptions;

use crate::kit::{Examined, Nodes, run};

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
    examined.one("failure-domains", &["warning all", "3 nodes are on 127.1"]);
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

#[tokio::test]
async fn a_node_is_reached_by_tls_if_its_certificate_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    fs::write(&certificate, pair.cert.pem()).unwrap();
    fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let options = ServerOptions::default();
    let options = options.argument("--tls-port").argument(port.to_string());
    let options = options.argument("--tls-auth-clients").argument("no");
    let options = options.argument("--tls-cert-file").argument(&certificate);
    let options = options
        .argument("--tls-ca-cert-file")
        .argument(&certificate);
    let nodes = Nodes::start_with(1, &options.argument("--tls-key-file").argument(&key));
    nodes.bless().await;
    let nodes = nodes.at(vec![format!("rediss://127.0.0.1:{port}")]);

    let mut command = nodes.command(&["doctor", "--json"]);
    let known = Examined::of(&run(command.env("SSL_CERT_FILE", &certificate)));
    assert_eq!(
        (known.code, &known.json["votes"]),
        (0, &1.into()),
        "{known:?}"
    );
    let unknown = nodes.doctor(&[]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    unknown.one("reachable", &["failure"]);
}
