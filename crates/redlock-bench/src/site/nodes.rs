//! The nodes, and what they say of themselves.

use std::{net::SocketAddr, time::Duration};

use redlock_sandbox::{Server, ServerBinary, ServerOptions, ServerSet};

use crate::failed::{Failed, Result};

/// Independent servers on the loopback interface, which end with this value.
#[derive(Debug)]
pub(crate) struct Nodes(ServerSet);

impl Nodes {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> Result<Self> {
        let binary = ServerBinary::find()?;
        let servers = ServerSet::start(&binary, count, &ServerOptions::default())?;
        Ok(Self(servers))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.urls()
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(Server::address).collect()
    }

    /// Returns the CPU time that all of them have used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.running().map(cpu).sum()
    }

    /// Stops one in its tracks, and lets it go on after `work`.
    pub(crate) fn while_frozen<T>(
        &self,
        index: usize,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let node = &self.0[index % self.0.len()];
        node.freeze()?;
        let outcome = work();
        node.thaw()?;
        // It has read what it was sent meanwhile once it answers.
        node.command(&["PING"])?;
        outcome
    }

    /// Kills one for good.
    pub(crate) fn kill(&mut self, index: usize) -> Result<()> {
        Ok(self.0[index].kill()?)
    }

    fn running(&self) -> impl Iterator<Item = &Server> {
        self.0.iter().filter(|server| server.is_running())
    }
}

fn cpu(server: &Server) -> Result<Duration> {
    let info = server.command(&["INFO", "cpu"])?;
    let info = info.as_text();
    let info = info.ok_or_else(|| Failed("a node does not say how it is".to_owned()))?;
    let field = |name: &str| field(info, name).unwrap_or_default();
    let seconds = field("used_cpu_sys") + field("used_cpu_user");
    Ok(Duration::try_from_secs_f64(seconds)?)
}

fn field(info: &str, name: &str) -> Option<f64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok();
    info.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info =
            "# CPU\r\nused_cpu_sys_children:7.5\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\n";
        assert_eq!(field(info, "used_cpu_sys"), Some(0.25));
        assert_eq!(field(info, "used_cpu_user"), Some(1.5));
        assert_eq!(field(info, "used_cpu"), None);
    }
}
