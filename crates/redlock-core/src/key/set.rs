use std::{fmt, slice, sync::Arc};

use super::{InvalidKey, ResourceKey};

/// The keys of one lease: one key, or up to 16 that nodes grant together.
///
/// The keys are in order, and each occurs once.
///
/// # Examples
///
/// ```
/// use redlock_core::ResourceKeys;
///
/// let keys = ResourceKeys::new(["account:9", "account:7", "account:9"])?;
/// let names: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
/// assert_eq!(names, ["account:7", "account:9"]);
/// assert!(ResourceKeys::new([""; 0]).is_err());
/// # Ok::<_, redlock_core::InvalidKey>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct ResourceKeys(OneOrSeveral);

#[derive(Clone, Eq, Hash, PartialEq)]
enum OneOrSeveral {
    One(ResourceKey),
    // invariant: 2 to MAX_LEN keys, in order, each once
    Several(Arc<[ResourceKey]>),
}

impl ResourceKeys {
    /// The most different keys of a lease.
    pub const MAX_LEN: usize = redlock_proto::KeySet::MAX_LEN;

    /// Returns the set of these keys, which may come in any order; a key that occurs twice counts once.
    ///
    /// # Errors
    ///
    /// A key is not valid, there is no key, or there are more than [`MAX_LEN`](Self::MAX_LEN) different keys.
    pub fn new<I>(keys: I) -> Result<Self, InvalidKey>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceKey>,
        <I::Item as TryInto<ResourceKey>>::Error: Into<InvalidKey>,
    {
        let keys = keys
            .into_iter()
            .map(|key| key.try_into().map_err(Into::into));
        let mut keys: Vec<ResourceKey> = keys.collect::<Result<_, InvalidKey>>()?;
        keys.sort_unstable();
        keys.dedup();
        match keys.len() {
            1 => Ok(Self(OneOrSeveral::One(keys.swap_remove(0)))),
            2..=Self::MAX_LEN => Ok(Self(OneOrSeveral::Several(keys.into()))),
            count => Err(InvalidKey::count(count)),
        }
    }

    /// Returns the first key, which is the only key unless this is a set of several.
    pub fn first(&self) -> &ResourceKey {
        match &self.0 {
            OneOrSeveral::One(key) => key,
            OneOrSeveral::Several(keys) => &keys[0],
        }
    }

    /// Returns the keys, in order.
    pub fn iter(&self) -> slice::Iter<'_, ResourceKey> {
        self.as_slice().iter()
    }

    /// Returns the keys, in order.
    pub fn as_slice(&self) -> &[ResourceKey] {
        match &self.0 {
            OneOrSeveral::One(key) => slice::from_ref(key),
            OneOrSeveral::Several(keys) => keys,
        }
    }

    /// Returns whether there are several.
    pub(crate) const fn is_several(&self) -> bool {
        matches!(self.0, OneOrSeveral::Several(_))
    }
}

impl From<ResourceKey> for ResourceKeys {
    fn from(key: ResourceKey) -> Self {
        Self(OneOrSeveral::One(key))
    }
}

impl<'a> IntoIterator for &'a ResourceKeys {
    type Item = &'a ResourceKey;
    type IntoIter = slice::Iter<'a, ResourceKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for ResourceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_and_too_many_are_refused_and_duplicates_are_one() {
        let refused = ResourceKeys::new((0..17).map(|key| key.to_string())).unwrap_err();
        assert!(
            refused.to_string().contains("17 resource keys"),
            "{refused}"
        );
        let refused = ResourceKeys::new([""; 0]).unwrap_err().to_string();
        assert!(refused.contains("0 resource keys"), "{refused}");
        assert!(ResourceKeys::new(["a", "a\n"]).is_err());
        let sixteen = (0..32).map(|key| (key / 2).to_string());
        assert_eq!(ResourceKeys::new(sixteen).unwrap().iter().len(), 16);
        let one = ResourceKeys::new(["a", "a"]).unwrap();
        assert!(!one.is_several());
        assert_eq!(one, ResourceKey::try_from("a").unwrap().into());
    }

    #[test]
    fn debug_shows_no_name() {
        let keys = ResourceKeys::new(["iban:DE02", "iban:DE03"]).unwrap();
        assert!(!format!("{keys:?}").contains("DE0"), "{keys:?}");
    }
}
