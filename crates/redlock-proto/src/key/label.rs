use std::{fmt, hash::Hash, str::FromStr};

/// The public name of a holder: 1 to 64 printable characters of ASCII.
///
/// Nodes store the label behind the secret of an [owner](crate::OwnerId), so that a refusal, an error and a status can
/// name the holder of a key.
/// The label is no secret and no capability: no decision depends on it, and two holders may have the same label.
///
/// # Examples
///
/// ```
/// # use redlock_proto::HolderLabel;
///
/// let label: HolderLabel = "order@web-7:4312".parse()?;
/// assert_eq!(label.as_str(), "order@web-7:4312");
/// assert!("two\nlines".parse::<HolderLabel>().is_err());
///
/// let value = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f order@web-7:4312";
/// assert_eq!(HolderLabel::of_value(value), Some(label));
/// # Ok::<_, redlock_proto::InvalidLabel>(())
/// ```
// Of a fixed size, so that requests can be copied without memory of their own.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct HolderLabel {
    len: u8,
    // invariant: the first `len` are printable ASCII, `len` is not zero, and all behind them are zero
    bytes: [u8; Self::MAX_LEN],
}

impl HolderLabel {
    /// The longest label, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Returns the label that is closest to a text: `?` replaces each character that is not printable ASCII, and the
    /// label ends after [`MAX_LEN`](Self::MAX_LEN) characters.
    ///
    /// It returns `None` if nothing is left.
    pub fn closest(text: &str) -> Option<Self> {
        let mut label = Self {
            len: 0,
            bytes: [0; Self::MAX_LEN],
        };
        let trimmed = text.trim().chars();
        for (place, char) in label.bytes.iter_mut().zip(trimmed) {
            let byte = u8::try_from(char).ok().filter(|byte| is_printable(*byte));
            *place = byte.unwrap_or(b'?');
            label.len += 1;
        }
        (label.len > 0).then_some(label)
    }

    /// Returns this label with the class of the held key before it: `class@label`.
    ///
    /// It cuts the class if both together are too long.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_proto::HolderLabel;
    ///
    /// let process: HolderLabel = "web-7:4312".parse()?;
    /// assert_eq!(process.holding_for("order").as_str(), "order@web-7:4312");
    /// # Ok::<_, redlock_proto::InvalidLabel>(())
    /// ```
    pub fn holding_for(self, class: &str) -> Self {
        let Some(class) = Self::closest(class) else {
            return self;
        };
        let (own, room) = (usize::from(self.len), Self::MAX_LEN - usize::from(self.len));
        let cut = usize::from(class.len).min(room.saturating_sub(1));
        if cut == 0 {
            return self;
        }
        let mut joined = class;
        joined.bytes[cut] = b'@';
        joined.bytes[cut + 1..cut + 1 + own].copy_from_slice(&self.bytes[..own]);
        joined.bytes[cut + 1 + own..].fill(0);
        joined.len = u8::try_from(cut + 1 + own).unwrap_or_default();
        joined
    }

    /// Returns the label in the value of a key as nodes store it; `None` if the value has no label, or is not from a
    /// client of this library.
    pub fn of_value(value: &str) -> Option<Self> {
        Self::secret_of(value)?;
        let (_, label) = value.split_once(' ')?;
        label.parse().ok()
    }

    /// Returns what stands before the label in such a value; `None` if that is not ours.
    pub(super) fn secret_of(value: &str) -> Option<&str> {
        let secret = value.split(' ').next()?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (secret.len() == 32 && secret.bytes().all(is_digit)).then_some(secret)
    }

    /// Returns the label as text.
    pub fn as_str(&self) -> &str {
        // invariant: it is ASCII
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl FromStr for HolderLabel {
    type Err = InvalidLabel;

    fn from_str(text: &str) -> Result<Self, InvalidLabel> {
        let is_whole = text.len() <= Self::MAX_LEN && text.bytes().all(is_printable);
        Self::closest(text)
            .filter(|label| is_whole && label.as_str() == text)
            .ok_or(InvalidLabel(()))
    }
}

impl fmt::Display for HolderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for HolderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A text that is no [`HolderLabel`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidLabel(());

impl fmt::Display for InvalidLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = HolderLabel::MAX_LEN;
        write!(
            f,
            "is not 1 to {max} printable characters of ASCII without a space at either end"
        )
    }
}

impl std::error::Error for InvalidLabel {}

const fn is_printable(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::HolderLabel;

    fn closest(text: &str) -> Option<String> {
        HolderLabel::closest(text).map(|label| label.to_string())
    }

    #[test]
    fn a_label_is_printable_and_short() {
        for text in ["", " ", " a", "a ", "a\tb", "é", &"x".repeat(65)] {
            assert!(text.parse::<HolderLabel>().is_err(), "{text:?}");
        }
        for text in ["a", "a b", "~", &"x".repeat(64)] {
            let label: HolderLabel = text.parse().unwrap();
            assert_eq!(label.as_str(), text);
            assert_eq!(format!("{label:?}"), format!("{text:?}"));
        }
    }

    #[test]
    fn the_closest_label_is_cut_and_has_no_control_characters() {
        assert_eq!(closest(" a\nb\u{e9} ").as_deref(), Some("a?b?"));
        assert_eq!(closest(&"é".repeat(70)), Some("?".repeat(64)));
        assert_eq!(closest(" \t"), None);
    }

    #[test]
    fn a_class_is_cut_so_that_the_holder_can_be_told() {
        let process: HolderLabel = "web-7:4312".parse().unwrap();
        let joined = |class: &str| process.holding_for(class);
        assert_eq!(joined("a").as_str(), "a@web-7:4312");
        assert_eq!(joined("a"), "a@web-7:4312".parse().unwrap());
        assert_eq!(joined("a").holding_for("b").as_str(), "b@a@web-7:4312");
        assert_eq!(
            joined(&"x".repeat(64)).as_str(),
            format!("{}@web-7:4312", "x".repeat(53))
        );
        assert_eq!(joined(" "), process);
        let longest: HolderLabel = "y".repeat(64).parse().unwrap();
        assert_eq!(longest.holding_for("a"), longest);
        let long: HolderLabel = "y".repeat(63).parse().unwrap();
        assert_eq!(long.holding_for("a"), long);
    }

    #[test]
    fn only_a_value_of_ours_has_a_label() {
        let secret = "0f".repeat(16);
        let of = |value: &str| HolderLabel::of_value(value).map(|label| label.to_string());
        assert_eq!(of(&format!("{secret} web:1")).as_deref(), Some("web:1"));
        assert_eq!(of(&secret), None);
        assert_eq!(of(&format!("{secret} ")), None);
        assert_eq!(of(&format!("{secret}0 web:1")), None);
        assert_eq!(of("a secret of another client's"), None);
        assert_eq!(of(&format!("{} web:1", "xy".repeat(16))), None);
    }
}
