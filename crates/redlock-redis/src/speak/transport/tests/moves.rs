//! Connections that are moved from one runtime to another.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    thread,
};

use deadpool_redis::redis::Value;
use futures_util::poll;
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
};

use super::{Pipe, SOON, alone, echo, soon};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Starts a server that answers `OK` once it has so many bytes, as often as they come.
fn server(length: usize) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut command = vec![0; length];
        // The client hangs up at the end.
        while stream.read_exact(&mut command).is_ok() {
            // Long after the client waits for it.
            thread::sleep(SOON / 100);
            stream.write_all(b"+OK\r\n").unwrap();
        }
    });
    address
}

async fn connect(address: SocketAddr) -> Pipe {
    let stream = TcpStream::connect(address).await.unwrap();
    Pipe::new(Box::pin(stream))
}

#[test]
fn a_call_on_its_way_goes_on_in_another_runtime_wherever_it_is() {
    // One that the system takes at once, and one of which it takes a part.
    for length in [1, 8_000_000] {
        for is_gone in [false, true] {
            let command = echo(&"x".repeat(length));
            let address = server(command.get_packed_command().len());
            let (first, second) = (runtime(), runtime());
            let pipe = first.block_on(connect(address));
            let mut asking = pin!(pipe.ask(&command));
            first.block_on(async { assert!(poll!(&mut asking).is_pending()) });
            let first = (!is_gone).then_some(first);
            let answer = second.block_on(async {
                assert!(pipe.move_here());
                soon(asking).await
            });
            assert_eq!(answer, Ok(alone(Value::Okay)));
            // The first runtime is not driven while the second one waits.
            let answer = second.block_on(soon(pipe.ask(&command)));
            assert_eq!(answer, Ok(alone(Value::Okay)), "{length} bytes");
            drop(first);
        }
    }
}

#[test]
fn a_connection_stays_where_it_is_if_a_runtime_has_no_sockets() {
    let command = echo("a");
    let address = server(command.get_packed_command().len());
    let (first, second) = (runtime(), Builder::new_current_thread().build().unwrap());
    let pipe = first.block_on(connect(address));
    let moved = catch_unwind(AssertUnwindSafe(|| {
        second.block_on(async { pipe.move_here() })
    }));
    assert!(moved.is_err());
    assert_eq!(
        first.block_on(soon(pipe.ask(&command))),
        Ok(alone(Value::Okay))
    );
}
