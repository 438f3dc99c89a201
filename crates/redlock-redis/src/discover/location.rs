//! Where a configuration says that a node is.

use std::fmt;
#[cfg(feature = "deadpool-redis")]
use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::{ConnectionInfo, IntoConnectionInfo};

use super::{
    address::{self, Address},
    naming_url::NamingUrl,
};
#[cfg(feature = "deadpool-redis")]
use super::{cluster_vote::slot_of, poll::Informants, report::NamingReport};
use crate::{CredentialsProvider, RedisNodeError};

/// The place of a node, as its configuration says it.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "its one user handles both")]
pub enum Location {
    /// At an address.
    Address(Box<ConnectionInfo>),
    /// Where Sentinels or the nodes of a Cluster say.
    Named(Box<NamingUrl>),
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its address may come with a password.
        write!(f, "Location({self})")
    }
}

impl Location {
    /// Reads it from a configuration, which has no credentials if a provider gives them.
    pub fn of(
        config: &deadpool_redis::Config,
        credentials: Option<&CredentialsProvider>,
    ) -> Result<Self, RedisNodeError> {
        let url = config.url.as_deref().filter(|url| !is_cut_short(url));
        let url = url.filter(|_| config.connection.is_none());
        let location = match url.and_then(NamingUrl::read) {
            Some(url) => Self::Named(Box::new(url.map_err(RedisNodeError::new)?)),
            None => Self::Address(Box::new(connection_info(config)?)),
        };
        let settings = match &location {
            Self::Address(info) => info.redis_settings(),
            Self::Named(url) => url.settings.redis_settings(),
        };
        let has_its_own = settings.username().is_some() || settings.password().is_some();
        if has_its_own && credentials.is_some() {
            let why =
                "has a user or a password in its URL, and a provider of credentials; give one";
            return Err(RedisNodeError::new(why));
        }
        Ok(location)
    }

    /// Returns how to connect to the server that is there now, for a client of this namespace.
    #[cfg(feature = "deadpool-redis")]
    pub async fn locate(
        self,
        credentials: Option<&CredentialsProvider>,
        namespace: &str,
        limit: Duration,
    ) -> Result<ConnectionInfo, Arc<str>> {
        let info = match self {
            Self::Address(info) => *info,
            Self::Named(url) => {
                let slot = url.tag(namespace)?.as_deref().map(slot_of);
                let informants = Informants::new(*url, credentials.cloned(), limit);
                informants.located(slot.unwrap_or_default()).await?
            }
        };
        CredentialsProvider::completed(credentials, info).await
    }
}

#[cfg(feature = "deadpool-redis")]
impl Location {
    /// Returns what each of those says that name the server; `None` if none does.
    pub async fn naming(
        self,
        credentials: Option<&CredentialsProvider>,
        namespace: &str,
        limit: Duration,
    ) -> Result<Option<NamingReport>, Arc<str>> {
        let Self::Named(url) = self else {
            return Ok(None);
        };
        let slot = url.tag(namespace)?.as_deref().map(slot_of);
        let informants = Informants::new(*url, credentials.cloned(), limit);
        informants.report(slot.unwrap_or_default()).await.map(Some)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(info) => write!(f, "{}", Address::of(info)),
            Self::Named(url) => write!(f, "{url}"),
        }
    }
}

/// Returns how to connect to the server that is configured.
fn connection_info(config: &deadpool_redis::Config) -> Result<ConnectionInfo, RedisNodeError> {
    let info = match (&config.url, &config.connection) {
        (Some(url), None) if is_cut_short(url) => {
            let why = "has a `#` or a `?` in its user or password: write %23 or %3F there";
            return Err(RedisNodeError::new(why));
        }
        (Some(url), None) => {
            if let Some(why) = address::refusal_of_url(url) {
                return Err(RedisNodeError::new(why));
            }
            url.as_str().into_connection_info()
        }
        (None, Some(connection)) => connection.clone().into_connection_info(),
        (None, None) => {
            return Err(RedisNodeError::new("has neither a url nor a connection"));
        }
        (Some(_), Some(_)) => {
            return Err(RedisNodeError::new(
                "has both a url and a connection; give one",
            ));
        }
    };
    // The parser's own message may quote the URL, and with it the password.
    let info = info.map_err(|_| {
        let url = config.url.as_deref().unwrap_or_default();
        RedisNodeError::new(address::refused_url(url, cfg!(feature = "tls-rustls")))
    })?;
    Ok(address::with_user(info))
}

/// Returns whether a parser would take what is before a `#` or a `?` of the user or the password for the host, which is
/// shown.
fn is_cut_short(url: &str) -> bool {
    let is_path = url
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.to_ascii_lowercase().contains("unix"));
    let end = url.find(['#', '?']);
    !is_path && end.is_some_and(|end| url[end..].contains('@'))
}

#[cfg(all(test, not(feature = "tls-rustls")))]
mod tests {
    use super::*;

    #[test]
    fn without_the_feature_tls_is_refused_by_its_name() {
        let config = deadpool_redis::Config::from_url("rediss://me:hunter2@host:6380");
        let refused = connection_info(&config).unwrap_err().to_string();
        assert!(refused.contains("`tls-rustls`"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
