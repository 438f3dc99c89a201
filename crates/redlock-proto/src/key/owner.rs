use std::fmt;

/// The value under which one attempt holds a key: random, and used once.
///
/// Whoever knows it can release the lock, so it is a capability: `Debug` does not show it, and it
/// has no `Display`.
/// The bits are an argument, because this crate has no randomness of its own; they must come from
/// the operating system's generator and must never be used for a second attempt.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct OwnerId([u8; 16]);

impl OwnerId {
    /// An owner made of these bits, such as those of a random UUID.
    pub const fn from_random(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// The form in which nodes store it: 32 lower-case hexadecimal digits.
    ///
    /// All owners have the same length, so none is a prefix of another.
    pub fn to_wire(self) -> String {
        let mut text = String::with_capacity(32);
        self.write(&mut text);
        text
    }

    /// Writes that form behind a text.
    pub(crate) fn write(self, text: &mut String) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.0 {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerId(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::OwnerId;

    #[test]
    fn s19_owners_are_compared_whole_and_have_one_length() {
        let owner = OwnerId::from_random([0x0f; 16]);
        assert_eq!(owner.to_wire(), "0f".repeat(16));
        assert_eq!(OwnerId::from_random([0; 16]).to_wire().len(), 32);
        assert_eq!(OwnerId::from_random([0xff; 16]).to_wire().len(), 32);
    }

    #[test]
    fn debug_does_not_show_the_owner() {
        assert_eq!(
            format!("{:?}", OwnerId::from_random([7; 16])),
            "OwnerId(..)"
        );
    }
}
