//! The nodes and their settings: from flags, the environment or a file, in this order.

use std::{path::PathBuf, time::Duration};

pub(crate) use redlock_console::look::settings::NodeSettings;
use redlock_core::{Config, NodeConfig};

use crate::{clock::duration, exit::CommandError};

/// The nodes and the policy of their namespace.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct ConnectionArgs {
    /// A file with the library's settings, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// URLs of the nodes, with commas between them [env: REDLOCK_NODES]
    #[arg(long, value_name = "URLS")]
    nodes: Vec<String>,

    /// The prefix of all keys [env: REDLOCK_NAMESPACE] [default: redlock]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// The longest lease of any client of the namespace [env: REDLOCK_MAX_TTL] [default: that which the nodes remember, or
    /// 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_ttl: Option<Duration>,

    /// The time that a node has to answer [env: REDLOCK_NODE_TIMEOUT] [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    node_timeout: Option<Duration>,

    /// The time that a connection may take to open [env: REDLOCK_CONNECT_TIMEOUT] [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    connect_timeout: Option<Duration>,

    /// Uses names as keys without a prefix, as other Redlock libraries do
    #[arg(long)]
    verbatim_keys: bool,
}

impl ConnectionArgs {
    /// Reads all settings that are given.
    pub(crate) fn given(&self) -> Result<NodeSettings, CommandError> {
        let file = match &self.config {
            Some(path) => Config::from_file(path)?,
            None => Config::default(),
        };
        let environment = Config::from_env()?;
        let flags = self.flags();
        if !self.nodes.is_empty() && flags.nodes.is_empty() {
            // The user did not mean the nodes of the environment.
            return Err(CommandError::wrong(
                "--nodes names no node: leave it out, or give a URL",
            ));
        }
        let mut config = file.overridden_by(environment).overridden_by(flags);
        if self.verbatim_keys && self.namespace.is_none() {
            // The flag wins over a namespace of the environment, such as the sandbox's, or of the file.
            config.namespace = None;
        }
        if config.nodes.is_empty() {
            let message = "no node is given: set REDLOCK_NODES, or give --nodes or --config";
            return Err(CommandError::wrong(message));
        }
        if self.max_ttl.is_some() && config.ttl.is_none() {
            // Leases of a try-out can be shorter than the default. No service has this flag and the default ttl, so their
            // conflict is no error in the settings of a service.
            let max_ttl = config.max_ttl.unwrap_or(NodeSettings::MAX_TTL);
            config.ttl = Some(NodeSettings::TTL.min(max_ttl));
        }
        Ok(NodeSettings::new(config)?)
    }

    fn flags(&self) -> Config {
        let mut config = Config::default();
        config.nodes = NodeConfig::list(&self.nodes.join(","));
        config.namespace.clone_from(&self.namespace);
        config.max_ttl = self.max_ttl;
        config.node_timeout = self.node_timeout;
        config.connect_timeout = self.connect_timeout;
        config.expert.verbatim_keys = self.verbatim_keys;
        config
    }
}

/// Returns the ttl of a lease that a user has asked for, as it was given.
///
/// # Errors
///
/// It is longer than any lease of the namespace.
pub(crate) fn whole_ttl(settings: &NodeSettings) -> Result<Duration, CommandError> {
    let max_ttl = settings.max_ttl();
    match settings.given_ttl() {
        Some(ttl) if ttl > max_ttl => Err(CommandError::wrong(format!(
            "a ttl of {ttl:?} (REDLOCK_TTL, or the file of --config) is longer than max_ttl of {max_ttl:?}, the longest \
             lease of the namespace: set it to {max_ttl:?} at most, or give --ttl"
        ))),
        _ => Ok(settings.ttl()),
    }
}
