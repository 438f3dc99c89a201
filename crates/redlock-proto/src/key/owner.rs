use std::{fmt, time::Duration};

use super::HolderLabel;

/// The value under which one attempt holds a key: random, and used once.
///
/// A client that knows it can release the lock, so it is a capability: `Debug` does not show it, and it has no
/// `Display`.
/// The bits are an argument, because this crate has no randomness of its own; they must come from
/// the operating system's generator and must never be used for a second attempt.
///
/// It may carry a [label](HolderLabel) behind that, which is public.
/// Nodes compare the whole value, so a client that knows only the label can release nothing.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct OwnerId {
    secret: [u8; 16],
    label: Option<HolderLabel>,
}

impl OwnerId {
    /// Makes an owner made of these bits, such as those of a random UUID.
    pub const fn from_random(bits: [u8; 16]) -> Self {
        Self {
            secret: bits,
            label: None,
        }
    }

    /// Makes an owner made of the last 74 of these bits and of a time since 1970, as a UUID of version 7 is.
    ///
    /// The time is public, as a label is: [`drawn_at`](Self::drawn_at) reads it in what a node stores.
    pub const fn drawn(bits: [u8; 16], at: Duration) -> Self {
        let mut secret = bits;
        // The least 48 bits of the milliseconds, which are all of them until the year 10889.
        let millis = at.as_millis().to_be_bytes();
        let mut byte = 0;
        while byte < TIME {
            secret[byte] = millis[millis.len() - TIME + byte];
            byte += 1;
        }
        secret[6] = 0x70 | secret[6] & 0x0f;
        secret[8] = 0x80 | secret[8] & 0x3f;
        Self::from_random(secret)
    }

    /// Returns when the owner of a key was drawn, by the clock of its holder, from the value that nodes store; `None` if it
    /// does not tell.
    ///
    /// An attempt begins by that, and wins a moment later if it wins.
    /// The value of another client library may show a time that means nothing, such as one in the future.
    pub fn drawn_at(value: &str) -> Option<Duration> {
        let secret = HolderLabel::secret_of(value)?;
        let is_drawn = secret.as_bytes()[12] == b'7' && b"89ab".contains(&secret.as_bytes()[16]);
        let millis = u64::from_str_radix(&secret[..2 * TIME], 16).ok()?;
        is_drawn.then(|| Duration::from_millis(millis))
    }

    /// Returns the owner with this label behind its secret.
    pub const fn labelled(self, label: Option<HolderLabel>) -> Self {
        Self { label, ..self }
    }

    /// Returns the part of it that is not public.
    pub const fn secret(&self) -> OwnerSecret {
        OwnerSecret(self.secret)
    }

    /// Returns the part of it that is public.
    pub const fn label(&self) -> Option<HolderLabel> {
        self.label
    }

    /// Returns the form in which nodes store it: 32 lower-case hexadecimal digits; a space and the label if it has one.
    ///
    /// No two owners have the same digits, so none is a prefix of another's value.
    pub fn to_wire(self) -> String {
        let mut text = String::with_capacity(32 + 1 + HolderLabel::MAX_LEN);
        self.write(&mut text);
        text
    }

    /// Writes that form behind a text.
    pub fn write(self, text: &mut String) {
        let label = self.label.map_or(0, |label| 1 + label.as_str().len());
        text.reserve(2 * self.secret.len() + label);
        self.write_secret(text);
        if let Some(label) = self.label {
            text.push(' ');
            text.push_str(label.as_str());
        }
    }

    /// Writes the digits behind a text.
    pub(crate) fn write_secret(self, text: &mut String) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.secret {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// The secret of an owner without its label.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct OwnerSecret([u8; 16]);

impl OwnerSecret {
    /// Returns the owner of this secret that has the label of another.
    pub const fn with_label_of(self, other: &OwnerId) -> OwnerId {
        OwnerId {
            secret: self.0,
            label: other.label,
        }
    }
}

/// How many bytes tell the time.
const TIME: usize = 6;

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerId(..)")
    }
}

impl fmt::Debug for OwnerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerSecret(..)")
    }
}

/// The mode in which a holder has its keys: exclusive, or shared with other readers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every mode")]
pub enum LockMode {
    /// No other holder has the keys at the same time: a writer.
    #[default]
    Exclusive,
    /// Other holders may share the keys: a reader.
    Shared,
    /// As [`Exclusive`](Self::Exclusive), of a holder that already shares the keys: its own shared lease is not in the way.
    ///
    /// On a node the two leases exist beside each other until one of them is released.
    /// So a lease that could not be upgraded is as good as before.
    Upgrade {
        /// The owner of the shared lease, which has the same label: few leases are upgrades, and each keeps its mode.
        of: OwnerSecret,
    },
}

impl LockMode {
    /// Returns whether other holders may share the keys.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Shared)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, HolderLabel, OwnerId};

    #[test]
    fn s19_owners_are_compared_whole_and_have_one_length() {
        let owner = OwnerId::from_random([0x0f; 16]);
        assert_eq!(owner.to_wire(), "0f".repeat(16));
        assert_eq!(OwnerId::from_random([0; 16]).to_wire().len(), 32);
        assert_eq!(OwnerId::from_random([0xff; 16]).to_wire().len(), 32);
    }

    #[test]
    fn a_label_stands_behind_the_secret_and_makes_another_value_of_it() {
        let owner = OwnerId::from_random([0x0f; 16]);
        let labelled = owner.labelled("web:1".parse().ok());
        assert_eq!(labelled.to_wire(), format!("{} web:1", owner.to_wire()));
        assert_ne!(labelled, owner);
        assert_eq!(labelled.label(), HolderLabel::of_value(&labelled.to_wire()));
        assert!(!format!("{labelled:?}").contains("0f"));
    }

    #[test]
    fn a_time_is_read_where_it_was_written_and_nowhere_else() {
        let at = Duration::from_millis(1_795_392_000_123);
        let owner = OwnerId::drawn([0xff; 16], at + Duration::from_micros(999));
        assert_eq!(owner.to_wire(), "01a205b3d07b7fffbfffffffffffffff");
        let labelled = owner.labelled("web:1".parse().ok());
        assert_eq!(OwnerId::drawn_at(&owner.to_wire()), Some(at));
        assert_eq!(OwnerId::drawn_at(&labelled.to_wire()), Some(at));
        for other in [
            "",
            "01a205b3d07b7fffbfffffffffffff",
            // Of version 4, as owners were before.
            "01a205b3d07b4fffbfffffffffffffff",
            "01A205B3D07B7FFFBFFFFFFFFFFFFFFF",
            "01a205b3-d07b-7fff-bfff-ffffffffffff",
            "01a205b3d07b7fffbfffffffffffffff\u{e9}",
        ] {
            assert_eq!(OwnerId::drawn_at(other), None, "{other}");
        }
    }

    #[test]
    fn debug_does_not_show_the_owner() {
        assert_eq!(
            format!("{:?}", OwnerId::from_random([7; 16])),
            "OwnerId(..)"
        );
    }
}
