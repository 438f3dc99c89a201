//! Requests to what the command serves.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address.parse().unwrap(), PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns the answer to a request, with its head.
pub(crate) fn get(address: &str, path: &str) -> String {
    get_with(address, path, &["Host: localhost"])
}

/// The same, with these headers and no others.
pub(crate) fn get_with(address: &str, path: &str, headers: &[&str]) -> String {
    let mut stream = connect(address);
    let headers = headers.join("\r\n");
    let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Sends a form, with these headers beside its own, and returns the answer.
pub(crate) fn post(address: &str, path: &str, form: &str, headers: &[&str]) -> String {
    let mut stream = connect(address);
    let length = form.len();
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n{headers}Connection: close\r\n\r\n{form}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Opens a stream of events, and returns it when its first event has begun.
pub(crate) fn stream(address: &str, path: &str) -> TcpStream {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    while !said.contains("data: ") {
        let mut some = [0; 4_096];
        let length = stream.read(&mut some).unwrap();
        assert!(length > 0, "it ended: {said}");
        said += &String::from_utf8_lossy(&some[..length]);
    }
    stream
}
