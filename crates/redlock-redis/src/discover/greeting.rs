//! Connects to an informant, and says why that is not possible.

use std::{pin::pin, sync::Arc, time::Duration};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, aio::MultiplexedConnection,
};
use futures_util::future::{Either, select};
use tokio::time::timeout;

use super::{naming_url::NamingUrl, texts};
use crate::speak::{
    error::{NotOpened, not_opened},
    probe::Probe,
};

/// Connects to an informant, which has this time for the connection and for each answer.
///
/// # Errors
///
/// The reason, and what to do.
pub(super) async fn connect(
    info: ConnectionInfo,
    url: &NamingUrl,
    limit: Duration,
) -> Result<MultiplexedConnection, Arc<str>> {
    let probe = Probe::of(&info);
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limit))
        .set_response_timeout(Some(limit));
    let refused = |NotOpened { reason, .. }| texts::no_informant(&reason, url);
    let client = Client::open(info).map_err(|error| refused(not_opened(&error)))?;
    let finding = async || match &probe {
        Some(probe) => probe.finding().await,
        None => None,
    };
    let found = |finding: Arc<str>| texts::no_informant(&finding, url);
    let mut connecting = pin!(client.get_multiplexed_async_connection_with_config(&settings));
    // A handshake with a server that speaks TLS, or that does not, may end with the time only.
    let connected = match timeout(limit / 2, &mut connecting).await {
        Ok(connected) => connected,
        Err(_) => match select(connecting, pin!(finding())).await {
            Either::Left((connected, _)) => connected,
            Either::Right((Some(finding), _)) => return Err(found(finding)),
            Either::Right((None, connecting)) => connecting.await,
        },
    };
    match connected.map_err(|error| not_opened(&error)) {
        Ok(connection) => Ok(connection),
        Err(vague) if vague.is_vague => Err(match finding().await {
            Some(finding) => found(finding),
            None => refused(vague),
        }),
        Err(clear) => Err(refused(clear)),
    }
}
