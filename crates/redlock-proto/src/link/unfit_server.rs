//! A session whose server cannot vote because of what it is: when the link leaves it for the server that the node's
//! name leads to by then.

use std::sync::Arc;

use super::LinkConfig;
use crate::{Instant, ServerInfo};

/// What the server of a session said against itself.
#[derive(Debug, Default)]
pub(super) struct UnfitServer(Option<Doubt>);

#[derive(Debug)]
struct Doubt {
    /// When the session is left.
    due: Instant,
    reason: Arc<str>,
    /// Whether the client knows what the server is, so that leaving it is no news.
    is_known: bool,
}

impl UnfitServer {
    /// Takes in what the server is, on a session that was made at `since`.
    pub(super) fn on_server_info(
        &mut self,
        server_info: &ServerInfo,
        since: Instant,
        config: &LinkConfig,
        now: Instant,
    ) {
        match server_info.wrong_server() {
            None => self.0 = None,
            Some(unfit) => {
                let reason = unfit.to_string().into();
                self.doubt(reason, since, config, now).is_known = true;
            }
        }
    }

    /// Takes in that the server refused a call as one that cannot vote.
    pub(super) fn on_refusal(
        &mut self,
        reason: Arc<str>,
        since: Instant,
        config: &LinkConfig,
        now: Instant,
    ) {
        self.doubt(reason, since, config, now);
    }

    /// Returns when the session is to be left, if it is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.as_ref().map(|doubt| doubt.due)
    }

    /// Returns why the session is left and whether the client knows, if it is time.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Arc<str>, bool)> {
        let doubt = self.0.take_if(|doubt| doubt.due <= now)?;
        Some((doubt.reason, doubt.is_known))
    }

    /// Returns the doubt there is, or begins one.
    ///
    /// A session lasts for the longest pause at least, so that a name which leads to no master costs one connection in
    /// that time.
    fn doubt(
        &mut self,
        reason: Arc<str>,
        since: Instant,
        config: &LinkConfig,
        now: Instant,
    ) -> &mut Doubt {
        self.0.get_or_insert_with(|| Doubt {
            due: now.max(since + config.longest_pause),
            reason,
            is_known: false,
        })
    }
}
