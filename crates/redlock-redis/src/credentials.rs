//! Credentials that are asked for before each connection.

use std::{error::Error, fmt, sync::Arc};

use deadpool_redis::redis::ConnectionInfo;
use futures_util::{FutureExt, future::BoxFuture};

/// A user and a password for a server, as `NodeConfig::with_credentials` of `redlock-core` asks for them.
///
/// `Debug` shows no password.
///
/// # Examples
///
/// ```
/// use redlock_redis::Credentials;
///
/// let credentials = Credentials::new("orders", "sesame");
/// assert!(!format!("{credentials:?}").contains("sesame"));
/// ```
#[derive(Clone)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// Makes credentials of a user of the server's ACL.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: Some(user.into()),
            ..Self::password(password)
        }
    }

    /// Makes credentials of the user `default`.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_redis::Credentials;
    ///
    /// // With `redlock-core`: NodeConfig::with_credentials("redis://10.0.0.1", provider)
    /// let provider = async || Ok::<_, std::io::Error>(Credentials::password("sesame"));
    /// # drop(provider);
    /// ```
    pub fn password(password: impl Into<String>) -> Self {
        Self {
            user: None,
            password: password.into(),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The provider that is asked for credentials before each connection.
#[derive(Clone)]
pub struct CredentialsProvider(Arc<Provide>);

type Provide = dyn Fn() -> BoxFuture<'static, Result<Credentials, Arc<str>>> + Send + Sync;

impl CredentialsProvider {
    /// Makes a provider; its error is for an operator.
    pub fn new<F, R, E>(provider: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let named = |error: E| format!("its provider of credentials failed: {}", error.into());
        let provide = move || {
            let credentials = provider();
            async move { credentials.await.map_err(|error| named(error).into()) }.boxed()
        };
        Self(Arc::new(provide))
    }

    /// Returns how to connect to a server with the credentials of now, if a provider gives them.
    pub(crate) async fn completed(
        provider: Option<&Self>,
        info: ConnectionInfo,
    ) -> Result<ConnectionInfo, Arc<str>> {
        let Some(Self(provide)) = provider else {
            return Ok(info);
        };
        let Credentials { user, password } = provide().await?;
        let settings = info.redis_settings().clone().set_password(password);
        let settings = match user {
            Some(user) => settings.set_username(user),
            None => settings,
        };
        Ok(info.set_redis_settings(settings))
    }
}

impl fmt::Debug for CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialsProvider")
            .finish_non_exhaustive()
    }
}
