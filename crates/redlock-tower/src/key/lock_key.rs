use std::ops::Deref;

use redlock_core::{AcquireOptions, ResourceKeys};

use crate::KeyError;

/// A value that names what to lock: a user that an outer layer has found, or a body that a handler takes.
///
/// [`ExtensionKey`](crate::ExtensionKey) and, with the feature `axum`, `Locked` take the lock that it names.
/// A type that derefs to such a value implements the trait too: `Json<Transfer>` does if `Transfer` does.
///
/// # Examples
///
/// ```
/// use redlock_core::{ResourceKey, ResourceKeys};
/// use redlock_tower::{KeyError, LockKey};
///
/// struct Transfer { from: u64, to: u64, cents: u64 }
///
/// impl LockKey for Transfer {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         // Both accounts: whatever else moves money from or to one of them waits.
///         let accounts = [ResourceKey::new("account", self.from)?, ResourceKey::new("account", self.to)?];
///         Ok(ResourceKeys::new(accounts)?)
///     }
/// }
///
/// # fn main() -> Result<(), KeyError> {
/// let locked = Transfer { from: 9, to: 7, cents: 100 }.lock_key()?;
/// let names: Vec<&str> = locked.iter().map(|key| key.as_str()).collect();
/// assert_eq!(names, ["account:7", "account:9"]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what to lock",
    label = "implement `LockKey` for `{Self}`, or for what it derefs to",
    note = "`fn lock_key(&self) -> Result<ResourceKeys, KeyError> {{ Ok(ResourceKey::new(\"order\", self.id)?.into()) }}`"
)]
pub trait LockKey {
    /// Returns the keys of what to lock, usually one: `Ok(ResourceKey::new("order", self.id)?.into())`.
    ///
    /// # Errors
    ///
    /// The request must not go on; the error has the answer.
    fn lock_key(&self) -> Result<ResourceKeys, KeyError>;

    /// Returns options that replace the layer's settings for this lease; by default, none.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{AcquireOptions, ResourceKey, ResourceKeys, Wait};
    /// use redlock_tower::{KeyError, LockKey};
    ///
    /// struct Import { tenant: u64, by_hand: bool }
    ///
    /// impl LockKey for Import {
    ///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
    ///         Ok(ResourceKey::new("import", self.tenant)?.into())
    ///     }
    ///
    ///     fn options(&self) -> AcquireOptions {
    ///         let options = AcquireOptions::new();
    ///         // A user at a screen gets an answer at once.
    ///         if self.by_hand { options.wait(Wait::Never) } else { options }
    ///     }
    /// }
    /// ```
    fn options(&self) -> AcquireOptions {
        AcquireOptions::new()
    }
}

// Otherwise the compiler's error for a missing implementation says that the value does not deref.
#[diagnostic::do_not_recommend]
impl<T> LockKey for T
where
    T: Deref,
    T::Target: LockKey,
{
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        (**self).lock_key()
    }

    fn options(&self) -> AcquireOptions {
        (**self).options()
    }
}
