//! The messages to callers in line: those of the model, and those that subscriptions to the server's channels hear.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};
use redlock_core::node::{Gift, NodeTime, Session};
use tokio::time::timeout;

use crate::differential::cast::{self, ONE_OF_EACH, SUBSCRIBERS};

/// The messages on each channel, the earliest first.
pub(crate) type Messages = BTreeMap<String, Vec<Gift>>;

/// A subscription to each channel.
pub(crate) struct Listener {
    channels: BTreeMap<String, BoxStream<'static, Gift>>,
}

impl Listener {
    /// Subscribes as clients do.
    pub(crate) async fn start(session: &mut dyn Session) -> Self {
        let mut channels = BTreeMap::new();
        // The others have the same prefix as one of these.
        for number in ONE_OF_EACH {
            let keyspace = cast::keyspace(number);
            for client in 0..SUBSCRIBERS {
                let stream = session.listen(&keyspace, client).await;
                let stream = stream.expect("the server lets clients subscribe");
                channels.insert(keyspace.channel(client), stream);
            }
        }
        Self { channels }
    }

    /// Returns all messages up to now; `publish` publishes a text on a channel, and returns how many have heard it.
    pub(crate) async fn heard(&mut self, publish: impl Fn(&str, &str) -> i64) -> Messages {
        let mut heard = Messages::new();
        for (channel, stream) in &mut self.channels {
            // A server sends what is published on a channel in order.
            assert_eq!(publish(channel, LAST), 1, "{channel} has one subscriber");
            loop {
                let next = timeout(LIMIT, stream.next());
                let gift = next.await.expect("a published message arrives");
                let gift = gift.expect("the connection stands");
                if gift.time == NodeTime::from_micros(0) {
                    break;
                }
                heard.entry(channel.clone()).or_default().push(gift);
            }
        }
        heard
    }
}

/// Returns the channel of a client in a keyspace.
pub(crate) fn channel(keyspace: usize, client: u64) -> String {
    cast::keyspace(keyspace).channel(client)
}

/// The text of a message that no node publishes: it is of the year 1970.
const LAST: &str = "0 0 0 last";
const LIMIT: Duration = Duration::from_secs(30);
