//! One replica: `REDLOCK_NODES=redis://…,redis://…,redis://… bookings`, on the port that `BOOKINGS_LISTEN` says.

use std::{env, error::Error, time::Duration};

use bookings::{app::app, hotel::Hotel, jobs, serve::serve, service::Service};
use redlock_core::{Config, Redlock};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let redlock = Redlock::builder()
        .config(Config::from_env()?)
        .build()
        .await?;
    let hotel = Hotel::default();
    let mut service = Service::new(hotel.clone(), redlock.clone());
    if let Ok(takes) = env::var("BOOKINGS_BANK_TAKES_MS") {
        service.bank_takes = Duration::from_millis(takes.parse()?);
    }
    let app = app(service)?;
    let jobs = jobs::scheduler(redlock.clone()).build()?;
    jobs::start(&jobs, &redlock, &hotel).await?;
    let listen = env::var("BOOKINGS_LISTEN").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(listen).await?;
    tracing::info!(address = %listener.local_addr()?, "listens");
    serve(listener, app, redlock, jobs).await?;
    tracing::info!("ended in order");
    Ok(())
}
