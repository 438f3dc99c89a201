//! A registry of crates on a loopback port, with the parts of cargo's protocols that publish crates and fetch them.
//!
//! It keeps the crates in memory, and serves anybody on this machine: it is for a rehearsal.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The name by which manifests and commands mean this registry.
pub(crate) const NAME: &str = "rehearsal";

/// A registry that serves until the process ends.
pub(crate) struct Registry {
    address: SocketAddr,
}

impl Registry {
    /// Starts an empty registry on a free port of the loopback interface.
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = Arc::clone(&shelf);
                // A client that breaks off has no answer to get.
                thread::spawn(move || serve(&stream, address, &shelf));
            }
        });
        Ok(Self { address })
    }

    /// Returns the variables that name this registry to cargo, with a token, without which cargo publishes nothing.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        let prefix = format!("CARGO_REGISTRIES_{}", NAME.to_uppercase());
        let index = format!("sparse+http://{}/", self.address);
        [
            (format!("{prefix}_INDEX"), index),
            (format!("{prefix}_TOKEN"), NAME.to_owned()),
        ]
    }
}

/// The crates that were published, by name: each version's line of the index, and its package.
#[derive(Default)]
struct Shelf(BTreeMap<String, Vec<(Value, Vec<u8>)>>);

impl Shelf {
    /// Adds what the body of a request to publish has: the length of the metadata, the metadata, and so the package.
    fn add(&mut self, body: &[u8]) -> Result<(), String> {
        let (metadata, rest) = block(body).ok_or("the metadata is cut short")?;
        let (package, _) = block(rest).ok_or("the package is cut short")?;
        let metadata: Value = serde_json::from_slice(metadata).map_err(|e| e.to_string())?;
        let entry = entry(&metadata, package);
        let name = entry["name"].as_str().ok_or("no name")?.to_owned();
        let versions = self.0.entry(name).or_default();
        if versions.iter().any(|(old, _)| old["vers"] == entry["vers"]) {
            return Err(format!("{} {} is there", entry["name"], entry["vers"]));
        }
        versions.push((entry, package.to_owned()));
        Ok(())
    }

    /// Returns the file of a crate in the index: a line for each version.
    fn index(&self, name: &str) -> Option<Vec<u8>> {
        let lines = self.0.get(name)?.iter();
        let lines: Vec<_> = lines.map(|(entry, _)| entry.to_string()).collect();
        Some(lines.join("\n").into_bytes())
    }

    fn package(&self, name: &str, version: &str) -> Option<Vec<u8>> {
        let mut versions = self.0.get(name)?.iter();
        let found = versions.find(|(entry, _)| entry["vers"] == version);
        found.map(|(_, package)| package.clone())
    }
}

/// Splits off a block that begins with its length, in four bytes.
fn block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length).try_into().ok()?)
}

/// Returns the line of the index for what cargo says of a package, which has other names for some of it.
fn entry(metadata: &Value, package: &[u8]) -> Value {
    let digest = Sha256::digest(package);
    let checksum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let dependencies = metadata["deps"].as_array().into_iter().flatten();
    let dependencies: Vec<_> = dependencies
        .map(|asked| {
            let (name, renamed) = (&asked["name"], &asked["explicit_name_in_toml"]);
            let (name, package) = if renamed.is_null() {
                (name, &Value::Null)
            } else {
                (renamed, name)
            };
            json!({
                "name": name, "req": asked["version_req"], "features": asked["features"],
                "optional": asked["optional"], "default_features": asked["default_features"],
                "target": asked["target"], "kind": asked["kind"], "registry": asked["registry"],
                "package": package,
            })
        })
        .collect();
    json!({
        "name": metadata["name"], "vers": metadata["vers"], "deps": dependencies, "cksum": checksum,
        "features": metadata["features"], "links": metadata["links"], "rust_version": metadata["rust_version"],
        "yanked": false, "v": 2,
    })
}

/// Answers the one request of a connection.
fn serve(mut stream: &TcpStream, address: SocketAddr, shelf: &Mutex<Shelf>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(("expect", _)) => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next(), words.next());
    let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, answer) = answer(method, path.unwrap_or_default(), &body, address, &mut shelf);
    drop(shelf);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&answer)
}

/// Returns the status and the body of the answer to a request.
fn answer(
    method: Option<&str>,
    path: &str,
    body: &[u8],
    address: SocketAddr,
    shelf: &mut Shelf,
) -> (&'static str, Vec<u8>) {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let found = match (method, &parts[..]) {
        (Some("PUT"), ["api", "v1", "crates", "new"]) => {
            return match shelf.add(body) {
                Ok(()) => ("200 OK", b"{}".to_vec()),
                Err(why) => (
                    "400 Bad Request",
                    json!({ "errors": [{ "detail": why }] })
                        .to_string()
                        .into_bytes(),
                ),
            };
        }
        (Some("GET"), ["config.json"]) => {
            let here = format!("http://{address}");
            let config = json!({ "dl": format!("{here}/crates"), "api": here });
            Some(config.to_string().into_bytes())
        }
        (Some("GET"), ["crates", name, version, "download"]) => shelf.package(name, version),
        (Some("GET"), [.., name]) => shelf.index(name),
        _ => None,
    };
    found.map_or_else(|| ("404 Not Found", Vec::new()), |found| ("200 OK", found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(version: &str, package: &[u8]) -> Vec<u8> {
        let metadata = json!({
            "name": "one", "vers": version, "features": { "tls": ["dep:tls"] }, "links": null, "rust_version": "1.89",
            "deps": [{
                "name": "other", "version_req": "^1", "features": ["std"], "optional": true, "default_features": false,
                "target": null, "kind": "normal", "registry": null, "explicit_name_in_toml": "tls",
            }],
        });
        let metadata = metadata.to_string().into_bytes();
        let mut body = Vec::new();
        for block in [&metadata[..], package] {
            body.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
            body.extend(block);
        }
        body
    }

    fn ask(registry: &Registry, method: &str, path: &str, body: &[u8]) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(registry.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n");
        let body = answer.split_off(end.unwrap() + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    #[test]
    fn what_is_published_is_in_the_index_and_is_fetched_as_it_was() {
        let registry = Registry::start().unwrap();
        let new = "/api/v1/crates/new";
        for (version, package) in [("0.1.0", b"first"), ("0.1.1", b"other")] {
            let (head, _) = ask(&registry, "PUT", new, &published(version, package));
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        }
        let (_, index) = ask(&registry, "GET", "/3/o/one", b"");
        let index = String::from_utf8(index).unwrap();
        let lines: Vec<Value> = index
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        // Cargo's names of what the index has under others.
        let asked = &lines[0]["deps"][0];
        assert_eq!(
            (&asked["name"], &asked["package"]),
            (&json!("tls"), &json!("other"))
        );
        assert_eq!(asked["req"], "^1");
        // The first bytes of the digest of `first`.
        let checksum = lines[0]["cksum"].as_str().unwrap();
        assert!(checksum.starts_with("a7937b64b8caa58f") && checksum.len() == 64);
        let (_, package) = ask(&registry, "GET", "/crates/one/0.1.1/download", b"");
        assert_eq!(package, b"other");
        let (_, config) = ask(&registry, "GET", "/config.json", b"");
        let config: Value = serde_json::from_slice(&config).unwrap();
        let address = registry.address;
        assert_eq!(config["dl"], format!("http://{address}/crates"));
    }

    #[test]
    fn a_version_is_published_once_and_what_is_missing_is_not_found() {
        let registry = Registry::start().unwrap();
        let put = |body: &[u8]| ask(&registry, "PUT", "/api/v1/crates/new", body);
        assert!(
            put(&published("0.1.0", b"first"))
                .0
                .starts_with("HTTP/1.1 200")
        );
        let (head, why) = put(&published("0.1.0", b"again"));
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        assert!(String::from_utf8(why).unwrap().contains("is there"));
        let cut = published("0.1.1", b"cut");
        assert!(put(&cut[..cut.len() - 1]).0.starts_with("HTTP/1.1 400"));
        for path in ["/3/o/other", "/crates/one/0.1.1/download", "/"] {
            let (head, _) = ask(&registry, "GET", path, b"");
            assert!(head.starts_with("HTTP/1.1 404"), "{path}: {head}");
        }
    }
}
