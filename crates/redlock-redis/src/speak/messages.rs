//! The messages of a server, over a connection of their own: a connection that subscribes is of no other use.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::{Client, ConnectionInfo, Msg, RedisResult, cmd};
use futures_util::{StreamExt, stream::BoxStream};
use redlock_proto::{Gift, NodeTime, RunId};
use tokio::time::timeout;

use super::{error::reason, transport::Transport};

/// How to hear a server's messages.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    client: Client,
    limit: Duration,
}

impl Messages {
    pub(crate) fn of(info: ConnectionInfo, limit: Duration) -> RedisResult<Self> {
        let client = Client::open(info)?;
        Ok(Self { client, limit })
    }

    /// Subscribes to a channel; the stream ends with its connection.
    pub(crate) async fn subscribe(
        &self,
        channel: &str,
    ) -> Result<BoxStream<'static, Gift>, Arc<str>> {
        let subscribed = timeout(self.limit, async {
            let mut subscription = self.client.get_async_pubsub().await?;
            subscription.subscribe(channel).await?;
            Ok(subscription.into_on_message())
        });
        let messages = subscribed.await.map_err(|_| "it took too long")?;
        let messages = messages.map_err(|error| reason(&error))?;
        let gifts = messages.filter_map(async |message: Msg| gift(message.get_payload_bytes()));
        Ok(gifts.boxed())
    }
}

/// Publishes an empty message, which clients pass over, to find out whether the server lets the user publish.
///
/// A node that gives a key to a caller in line does not say whether it has published that.
pub(crate) async fn publish_nothing(
    channel: &str,
    mut connection: Transport,
) -> Result<(), Arc<str>> {
    let mut publish = cmd("PUBLISH");
    publish.arg(channel).arg("");
    let published = connection.ask(&publish).await;
    published.map(drop).map_err(|error| {
        let reason = reason(&error);
        format!("it publishes no messages: {reason}").into()
    })
}

/// Reads a message: the round, the token, the node's time in microseconds, and its run.
fn gift(message: &[u8]) -> Option<Gift> {
    let mut parts = std::str::from_utf8(message).ok()?.split(' ');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (round, counter, micros) = (number()?, number()?, number()?);
    let run = parts.next()?;
    Some(Gift {
        round,
        counter,
        time: NodeTime::from_micros(micros),
        run: RunId::from(run),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_of_a_node_is_passed_over() {
        let whole = gift(b"7 0000000000000042 1780000000000000 0f3a").unwrap();
        assert_eq!((whole.round, whole.counter), (7, 42));
        assert_eq!(whole.time, NodeTime::from_micros(1_780_000_000_000_000));
        assert_eq!(whole.run, RunId::from("0f3a"));
        for text in [
            "",
            "7",
            "7 42 1780000000000000",
            "a 42 1 0f3a",
            "7 -1 1 0f3a",
        ] {
            assert_eq!(gift(text.as_bytes()), None, "{text}");
        }
        assert_eq!(gift(&[0xff, b' ']), None);
    }
}
