//! A replica of the fleet that `cargo xtask rehearse` upgrades: each of its handlers makes sure that it is alone.

use std::{
    env,
    fs::File,
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use axum::{
    Router,
    extract::{self, State},
    routing::post,
};
use redlock_core::{Config, Redlock};
use redlock_tower::{PathKey, RedlockLayer, RequestLease};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = PathBuf::from(env::args_os().nth(1).ok_or("no folder for the orders")?);
    let config = Config::from_env()?;
    let redlock = Redlock::builder().config(config).build().await?;
    let order = PathKey::new("order", "order_id").parsed::<u64>();
    let one_per_order = RedlockLayer::new(redlock.clone(), order);
    let app = Router::new()
        .route(
            "/orders/{order_id}/pay",
            post(pay).route_layer(one_per_order),
        )
        .with_state(orders);
    let mut asked_to_end = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let ending = redlock.clone();
    let end = async move {
        asked_to_end.recv().await;
        ending.close().await;
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(end)
        .await?;
    redlock.close().await;
    Ok(())
}

async fn pay(
    State(orders): State<PathBuf>,
    extract::Path(order_id): extract::Path<u64>,
    lease: RequestLease,
) -> Result<&'static str, String> {
    let alone = alone(&orders.join(order_id.to_string()), lease.token().get());
    let Some(_alone) = alone.map_err(|error| error.to_string())? else {
        return Ok("overlap");
    };
    sleep(WORK).await;
    Ok("paid")
}

/// Locks the file of an order for as long as the handler has it; the kernel, and not redlock, keeps all others out.
///
/// Returns none if another handler has the file, or one with a greater or the same token had it.
fn alone(order: &Path, token: u64) -> io::Result<Option<File>> {
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(order)?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let last = io::read_to_string(&file)?;
    if last.parse().is_ok_and(|last: u64| token <= last) {
        return Ok(None);
    }
    file.rewind()?;
    write!(file, "{token:020}")?;
    Ok(Some(file))
}

const WORK: Duration = Duration::from_millis(5);
