//! A server is started, killed, restarted and frozen, and does what a real one would do then.

use std::{
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    time::Duration,
};

use redlock_sandbox::{
    CommandErrorKind, Persistence, Server, ServerBinary, ServerOptions, ServerSet, StartErrorKind,
};

#[test]
fn a_started_server_answers_on_its_url() {
    let server = start(ServerOptions::default());
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    assert_eq!(server.command(&["PING"]).unwrap().as_text(), Some("PONG"));
    assert!(server.is_running());
}

#[test]
fn it_listens_on_the_loopback_interface_only() {
    let server = start(ServerOptions::default());
    let bind = server.command(&["CONFIG", "GET", "bind"]).unwrap();
    assert_eq!(bind.as_array().unwrap()[1].as_text(), Some("127.0.0.1"));
}

#[test]
fn a_password_is_asked_for_and_is_in_the_url() {
    let server = start(ServerOptions::default().password("s3/cret"));
    assert!(server.url().starts_with("redis://:s3%2Fcret@127.0.0.1:"));
    server.command(&["SET", "key", "value"]).unwrap();

    let mut stream = TcpStream::connect(server.address()).unwrap();
    std::io::Write::write_all(&mut stream, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n").unwrap();
    let mut answer = [0; 7];
    std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
    assert_eq!(&answer, b"-NOAUTH");
}

#[test]
fn an_error_of_the_server_is_refused_with_its_words() {
    let server = start(ServerOptions::default());
    let error = server.command(&["SET", "key"]).unwrap_err();
    assert_eq!(error.kind(), CommandErrorKind::Refused);
    assert!(
        error.to_string().contains("wrong number of arguments"),
        "{error}"
    );
}

#[test]
fn a_killed_server_is_down_until_its_restart() {
    let mut server = start(ServerOptions::default());
    let port = server.port();
    server.kill().unwrap();
    assert!(!server.is_running());
    assert_eq!(server.pid(), None);
    assert_eq!(
        server.command(&["PING"]).unwrap_err().kind(),
        CommandErrorKind::Io
    );
    server.kill().unwrap();

    server.restart().unwrap();
    assert_eq!(server.port(), port);
    server.command(&["PING"]).unwrap();
}

#[test]
fn in_memory_a_restart_forgets_every_key() {
    let mut server = start(ServerOptions::default());
    server.command(&["SET", "key", "value"]).unwrap();
    server.restart().unwrap();
    assert!(server.command(&["GET", "key"]).unwrap().is_nil());
}

#[test]
fn append_only_a_crash_loses_nothing_that_was_acknowledged() {
    let mut server = start(ServerOptions::default().persistence(Persistence::AppendOnly));
    for index in 0..100 {
        server
            .command(&["INCRBY", "sum", &index.to_string()])
            .unwrap();
    }
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(
        server.command(&["GET", "sum"]).unwrap().as_text(),
        Some("4950")
    );
}

#[test]
fn a_frozen_server_accepts_connections_and_answers_none_until_thawed() {
    let server = start(ServerOptions::default());
    server.freeze().unwrap();
    assert!(server.is_running());
    TcpStream::connect(server.address()).unwrap();
    let error = server
        .command_within(Duration::from_millis(100), &["PING"])
        .unwrap_err();
    assert_eq!(error.kind(), CommandErrorKind::TimedOut);

    server.thaw().unwrap();
    server.command(&["PING"]).unwrap();
}

#[test]
fn a_frozen_server_can_be_killed_and_restarted() {
    let mut server = start(ServerOptions::default());
    server.freeze().unwrap();
    server.restart().unwrap();
    server.command(&["PING"]).unwrap();
}

#[test]
fn a_server_that_is_down_cannot_be_frozen() {
    let mut server = start(ServerOptions::default());
    server.kill().unwrap();
    server.freeze().unwrap_err();
    server.thaw().unwrap_err();
}

#[test]
fn a_server_that_ended_of_itself_is_not_running_and_can_be_restarted() {
    let mut server = start(ServerOptions::default());
    // No reply comes: the connection breaks, and the process is gone a moment after it.
    server.command(&["SHUTDOWN", "NOSAVE"]).unwrap_err();
    while server.is_running() {
        std::thread::yield_now();
    }
    server.freeze().unwrap_err();
    server.restart().unwrap();
    server.command(&["PING"]).unwrap();
}

#[test]
fn a_drop_leaves_no_listener_and_no_file() {
    let server = start(ServerOptions::default());
    let address = server.address();
    let folder = server.command(&["CONFIG", "GET", "dir"]).unwrap();
    let folder = PathBuf::from(folder.as_array().unwrap()[1].as_text().unwrap());
    assert!(folder.is_dir());
    drop(server);
    TcpStream::connect(address).unwrap_err();
    assert!(!folder.exists());
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let error = Server::start(&binary(), ServerOptions::default().port(port)).unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::PortTaken);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[test]
fn another_server_at_the_port_is_not_taken_for_ours() {
    let other = start(ServerOptions::default());
    let options = ServerOptions::default().port(other.port());
    let error = Server::start(&binary(), options).unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::PortTaken);
    other.command(&["PING"]).unwrap();
}

#[test]
fn a_server_that_refuses_its_options_says_which() {
    let options = ServerOptions::default()
        .argument("--no-such-option")
        .argument("1");
    let error = Server::start(&binary(), options).unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::Exited);
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Server::start(
        &ServerBinary::at("/no/such/server"),
        ServerOptions::default(),
    )
    .unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::Exited);
    assert!(error.to_string().contains("/no/such/server"), "{error}");
}

#[test]
fn the_servers_of_a_set_are_distinct_and_independent() {
    let mut servers = ServerSet::start(&binary(), 5, &ServerOptions::default()).unwrap();
    assert_eq!(servers.len(), 5);
    for (index, server) in servers.iter().enumerate() {
        server
            .command(&["SET", "index", &index.to_string()])
            .unwrap();
    }
    servers[3].restart().unwrap();
    for (index, server) in servers.iter().enumerate() {
        let value = server.command(&["GET", "index"]).unwrap();
        let expected = (index != 3).then(|| index.to_string());
        assert_eq!(value.as_text(), expected.as_deref());
    }
    let mut urls = servers.urls();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 5);
}

fn start(options: ServerOptions) -> Server {
    Server::start(&binary(), options).unwrap()
}

fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}
