//! The nodes, and what they say of themselves.

use std::time::Duration;

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

    /// Returns the CPU time that all of them have used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.0.iter().map(cpu).sum()
    }
}

fn cpu(server: &Server) -> Result<Duration> {
    let info = info(server, "cpu")?;
    let field = |name: &str| field(&info, name).unwrap_or_default();
    let seconds = field("used_cpu_sys") + field("used_cpu_user");
    Ok(Duration::try_from_secs_f64(seconds)?)
}

fn info(server: &Server, section: &str) -> Result<String> {
    let info = server.command(&["INFO", section])?;
    let text = info.as_text().map(str::to_owned);
    text.ok_or_else(|| Failed("a node does not say how it is".to_owned()))
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
