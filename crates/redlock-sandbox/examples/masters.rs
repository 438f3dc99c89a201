//! Three masters that crash, stand still and come back: `cargo run --example masters`.

use std::error::Error;

use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};

fn main() -> Result<(), Box<dyn Error>> {
    let binary = ServerBinary::find()?;
    let mut servers = ServerSet::start(&binary, 3, &ServerOptions::default())?;
    let urls = servers.urls();
    eprintln!("REDLOCK_NODES={}", urls.join(","));

    servers[0].kill()?; // a crash: no shutdown, no last write
    servers[1].freeze()?; // it is alive to the network, and silent
    eprintln!("one of three answers");
    servers[1].thaw()?;
    servers[0].restart()?; // the same port, and every key is forgotten
    assert_eq!(servers.urls(), urls);
    eprintln!("three of three answer");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
