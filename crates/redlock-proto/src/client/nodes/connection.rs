use std::sync::Arc;

/// The client's connection to a node, by the driver's last report.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    /// How many there were.
    number: u64,
    state: State,
}

#[derive(Clone, Debug, Default)]
pub(super) enum State {
    /// The first one is being made.
    #[default]
    Connecting,
    Up,
    Down(Arc<str>),
}

impl Connection {
    /// Takes in that a connection was made.
    pub(super) fn on_connected(&mut self) {
        self.number += 1;
        self.state = State::Up;
    }

    /// Takes in that the connection was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, reason: Arc<str>) {
        self.state = State::Down(reason);
    }

    /// Returns the number of the present connection, or of the last one, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    pub(super) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// Returns whether the node was reached, or found not to be reachable.
    pub(super) const fn is_settled(&self) -> bool {
        !matches!(self.state, State::Connecting)
    }
}
