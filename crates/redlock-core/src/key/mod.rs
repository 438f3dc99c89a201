mod set;

use std::{
    borrow::Borrow,
    cmp::Ordering,
    convert::Infallible,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use self::set::ResourceKeys;

/// The name of a resource: 1 to 512 bytes without control characters.
///
/// Two clients exclude each other on a resource when they use the same name in the same namespace.
/// [`new`](Self::new) joins a class and an identifier injectively, so that no two pairs are one lock.
///
/// A key may come from outside and is untrusted.
/// So its length is limited, the client never logs it above `TRACE`, and `Debug` shows only its length.
/// The class comes from the program, and log lines name a lease by its class.
///
/// As data of serde, a key is its name; a [`FencingToken`](crate::FencingToken) is a number by `u64::from`.
///
/// # Examples
///
/// ```
/// use redlock_core::ResourceKey;
///
/// let order = ResourceKey::new("order", 42)?;
/// assert_eq!(order.as_str(), "order:42");
/// assert_eq!(order, "order:42".parse()?);
/// assert!(ResourceKey::new("order", "").is_err());
/// # Ok::<_, redlock_core::InvalidKey>(())
/// ```
#[derive(Clone)]
pub struct ResourceKey {
    // invariant: 1 to MAX_LEN bytes, no control characters
    name: Arc<str>,
    // invariant: the length in bytes of the class with which the name begins, before a colon; 0 without a class
    class: usize,
}

impl ResourceKey {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 512;

    /// Returns the key of the resource `id` of the class `class`, as `class:id`.
    ///
    /// # Errors
    ///
    /// The class is empty or contains a colon, the id is empty, one of them contains a control character,
    /// or the whole key is longer than [`MAX_LEN`](Self::MAX_LEN) bytes.
    pub fn new(class: &str, id: impl fmt::Display) -> Result<Self, InvalidKey> {
        if class.is_empty() || class.contains(':') {
            return Err(InvalidKey(Reason::Class));
        }
        let name = format!("{class}:{id}");
        if name.len() == class.len() + 1 {
            return Err(InvalidKey(Reason::Empty));
        }
        let key: Self = name.parse()?;
        let class = class.len();
        Ok(Self { class, ..key })
    }

    /// Returns the key of a part of this resource.
    pub(crate) fn part(&self, part: impl fmt::Display) -> Result<Self, InvalidKey> {
        let key: Self = format!("{}#{part}", self.name).parse()?;
        let class = self.class;
        Ok(Self { class, ..key })
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the class that the caller gave to [`new`](Self::new); `None` if the key was made of a whole name.
    pub fn class(&self) -> Option<&str> {
        self.name
            .get(..self.class)
            .filter(|class| !class.is_empty())
    }
}

/// The slots of a resource, of which all clients must say the same number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SlotsOf {
    pub(crate) name: ResourceKey,
    pub(crate) count: u8,
}

impl SlotsOf {
    pub(crate) fn new(name: ResourceKey, count: usize) -> Self {
        // invariant: there are MAX_SLOTS at most
        let count = u8::try_from(count).unwrap_or(u8::MAX);
        Self { name, count }
    }
}

impl std::str::FromStr for ResourceKey {
    type Err = InvalidKey;

    fn from_str(name: &str) -> Result<Self, InvalidKey> {
        if name.is_empty() {
            return Err(InvalidKey(Reason::Empty));
        }
        if name.len() > Self::MAX_LEN {
            return Err(InvalidKey(Reason::Long(name.len())));
        }
        if name.chars().any(char::is_control) {
            return Err(InvalidKey(Reason::Control));
        }
        Ok(Self {
            name: name.into(),
            class: 0,
        })
    }
}

impl TryFrom<&str> for ResourceKey {
    type Error = InvalidKey;

    fn try_from(name: &str) -> Result<Self, InvalidKey> {
        name.parse()
    }
}

impl TryFrom<String> for ResourceKey {
    type Error = InvalidKey;

    fn try_from(name: String) -> Result<Self, InvalidKey> {
        name.parse()
    }
}

impl TryFrom<&String> for ResourceKey {
    type Error = InvalidKey;

    fn try_from(name: &String) -> Result<Self, InvalidKey> {
        name.parse()
    }
}

impl From<&Self> for ResourceKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl Borrow<str> for ResourceKey {
    fn borrow(&self) -> &str {
        &self.name
    }
}

impl Serialize for ResourceKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// From its name, which is checked; such a key has no class, as one that is made of a whole name.
impl<'de> Deserialize<'de> for ResourceKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

// Keys are the same if their names are, however they were made.
impl PartialEq for ResourceKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ResourceKey {}

impl PartialOrd for ResourceKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl Hash for ResourceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceKey({} bytes)", self.name.len())
    }
}

/// A name that cannot be a [`ResourceKey`], or keys that cannot be a set of [`ResourceKeys`].
///
/// The error says what is wrong without repeating the name.
///
/// # Examples
///
/// ```
/// use redlock_core::ResourceKey;
///
/// let invalid = "two\nlines".parse::<ResourceKey>().unwrap_err();
/// assert!(!invalid.to_string().contains("two"), "the name may be from outside");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidKey(Reason);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reason {
    Empty,
    Long(usize),
    Control,
    Class,
    Reserved,
    Count(usize),
    Slots(usize),
}

/// The most slots of a resource.
pub(crate) const MAX_SLOTS: usize = 64;

impl InvalidKey {
    /// Makes the error for a key that would be one of the nodes' own.
    pub(crate) const fn reserved() -> Self {
        Self(Reason::Reserved)
    }

    /// Makes the error for a number of different keys that one lease cannot have.
    pub(crate) const fn count(count: usize) -> Self {
        Self(Reason::Count(count))
    }

    /// Makes the error for a number of slots that no resource can have.
    pub(crate) const fn slots(count: usize) -> Self {
        Self(Reason::Slots(count))
    }
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = ResourceKey::MAX_LEN;
        match self.0 {
            Reason::Empty => write!(f, "resource key is empty; it must have 1 to {max} bytes"),
            Reason::Long(len) => {
                write!(
                    f,
                    "resource key has {len} bytes; it must have 1 to {max} bytes"
                )
            }
            Reason::Reserved => f.write_str(
                "resource key has the form of the nodes' own keys; with verbatim_keys a key must not begin with {redlock:verbatim}, nor be the mark, fence, horizon or tomb of a namespace",
            ),
            Reason::Count(count) => write!(
                f,
                "{count} resource keys; one lease is on 1 to {} different ones",
                ResourceKeys::MAX_LEN
            ),
            Reason::Slots(count) => {
                write!(f, "{count} slots; a resource has 1 to {MAX_SLOTS}")
            }
            Reason::Control => f.write_str("resource key contains a control character"),
            Reason::Class => f.write_str(
                "class of a resource key must not be empty and must not contain a colon",
            ),
        }
    }
}

impl std::error::Error for InvalidKey {}

impl From<Infallible> for InvalidKey {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bad_names_are_refused_and_say_why() {
        let error = |name: &str| name.parse::<ResourceKey>().unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error(&"x".repeat(513)).contains("has 513 bytes"));
        assert!(error("a\nb").contains("control"));
        assert!("x".repeat(512).parse::<ResourceKey>().is_ok());
        assert!(ResourceKey::new("a:b", "c").is_err());
        assert!(ResourceKey::new("", "c").is_err());
        assert!(ResourceKey::new("a", "").is_err());
    }

    #[test]
    fn debug_does_not_show_the_name() {
        let key = ResourceKey::new("iban", "DE02120300000000202051").unwrap();
        assert_eq!(format!("{key:?}"), "ResourceKey(27 bytes)");
    }

    #[derive(Deserialize, Serialize)]
    struct Report {
        resource: ResourceKey,
    }

    #[test]
    fn a_key_is_its_name_as_data_and_a_name_is_checked() {
        let resource = ResourceKey::new("order", 42).unwrap();
        let text = toml::to_string(&Report { resource }).unwrap();
        assert_eq!(text.trim(), "resource = \"order:42\"");
        let report: Report = toml::from_str(&text).unwrap();
        assert_eq!(report.resource, "order:42".parse().unwrap());
        for name in ["", "a\\nb"] {
            let text = format!("resource = \"{name}\"");
            assert!(toml::from_str::<Report>(&text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_a_key_or_refused(name in "\\PC{0,600}") {
            match name.parse::<ResourceKey>() {
                Ok(key) => prop_assert_eq!(key.as_str(), &name),
                Err(refused) => prop_assert!(!refused.to_string().is_empty()),
            }
        }

        /// rslock joined parts without a separator: ["user", "1admin"] and ["user1", "admin"] were one.
        #[test]
        fn s20_two_resources_are_never_one_key(
            a in "[a-z1:]{1,5}", b in "[a-z1:]{1,5}", c in "[a-z1:]{1,5}", d in "[a-z1:]{1,5}",
        ) {
            if let (Ok(left), Ok(right)) = (ResourceKey::new(&a, &b), ResourceKey::new(&c, &d)) {
                prop_assert_eq!(left == right, (a, b) == (c, d));
            }
        }
    }
}
