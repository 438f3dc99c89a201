//! Asks one address over HTTP, as Prometheus does.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Where a process is asked.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Address {
    /// The host as it was typed, and the port.
    host: String,
    port: u16,
    path: String,
}

/// Reads an address as it is typed.
pub(super) fn address(url: &str) -> Result<Address, String> {
    let rest = url
        .strip_prefix("http://")
        .ok_or("it must begin with http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "metrics"));
    // A password would be shown with what the process is called.
    if authority.contains('@') {
        return Err("a name and a password are not supported".to_owned());
    }
    let is_bare = authority.ends_with(']') || !authority.contains(':');
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !is_bare => (host, port.parse().map_err(|_| "its port is none")?),
        _ => (authority, 80),
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || !is_plain(rest) {
        return Err("it must be like http://web-1:9000/metrics".to_owned());
    }
    Ok(Address {
        host: host.to_owned(),
        port,
        path: path.to_owned(),
    })
}

impl Address {
    /// Returns what the process is called.
    pub(super) fn process(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns what it answers.
    pub(super) async fn get(&self) -> Result<String, String> {
        let words = |error: std::io::Error| error.to_string();
        let host = self.host.trim_matches(['[', ']']);
        let mut stream = TcpStream::connect((host, self.port)).await.map_err(words)?;
        // Of this version, an answer ends with its connection.
        let asked = format!(
            "GET /{} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
            self.path,
            self.process()
        );
        stream.write_all(asked.as_bytes()).await.map_err(words)?;
        let mut answer = Vec::new();
        let most = stream.take(MOST + 1);
        { most }.read_to_end(&mut answer).await.map_err(words)?;
        if answer.len() as u64 > MOST {
            return Err("its answer is too long".to_owned());
        }
        body(&String::from_utf8_lossy(&answer))
    }
}

/// Returns the body of an answer that says that it is one.
fn body(answer: &str) -> Result<String, String> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("its answer is not one of HTTP")?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if !head.starts_with("HTTP/1.") || status != "200" {
        return Err(format!("its answer is {status:?}, not 200"));
    }
    Ok(body.to_owned())
}

/// The longest answer of a process, in bytes; a thousand classes take some hundred thousand.
const MOST: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_may_have_a_port_and_a_path() {
        let read = |url: &str| {
            let address = address(url).unwrap();
            format!("{} /{}", address.process(), address.path)
        };
        assert_eq!(read("http://web-1:9000/metrics"), "web-1:9000 /metrics");
        assert_eq!(read("http://web-1"), "web-1:80 /metrics");
        assert_eq!(read("http://[::1]:9000/m?a=b"), "[::1]:9000 /m?a=b");
        assert_eq!(read("http://[::1]/"), "[::1]:80 /");
        for wrong in [
            "web-1:9000",
            "https://web-1",
            "http://",
            "http://web-1:port",
            "http://me:hunter2@web-1",
            "http://web-1/a b",
        ] {
            let error = address(wrong).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn only_an_answer_of_200_is_one() {
        assert_eq!(
            body("HTTP/1.0 200 OK\r\na: b\r\n\r\nup 1\n").unwrap(),
            "up 1\n"
        );
        for wrong in [
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "SSH-2.0\r\n",
            "nothing\r\n\r\n200",
        ] {
            body(wrong).unwrap_err();
        }
    }
}
