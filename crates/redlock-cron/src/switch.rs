//! What is remembered of a pause and its end, in place of a configuration.

/// Whether a job is paused, from some moment on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Switch {
    Paused,
    Resumed,
}

impl Switch {
    /// As it is remembered: the highest byte is the format, and the lowest the switch.
    pub(crate) fn number(self) -> u64 {
        let switch = match self {
            Self::Paused => PAUSED,
            Self::Resumed => RESUMED,
        };
        FORMAT << 56 | switch
    }

    /// What is remembered.
    ///
    /// Versions without a format wrote the switch alone.
    /// A number that this version does not know is a pause of some kind, because a later one wrote it for a reason.
    pub(crate) fn of(number: u64) -> Self {
        match number {
            RESUMED => Self::Resumed,
            _ if number == Self::Resumed.number() => Self::Resumed,
            _ => Self::Paused,
        }
    }

    /// For the record of the moment, and for errors.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
        }
    }
}

const PAUSED: u64 = 1;
const RESUMED: u64 = 2;

/// Another than that of fingerprints, so that none is taken for the other.
const FORMAT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_so_is_what_earlier_versions_wrote() {
        for (switch, number, earlier) in [
            (Switch::Paused, 0x0200_0000_0000_0001, 1),
            (Switch::Resumed, 0x0200_0000_0000_0002, 2),
        ] {
            assert_eq!(switch.number(), number);
            assert_eq!(Switch::of(number), switch);
            assert_eq!(Switch::of(earlier), switch);
        }
        assert_eq!(Switch::of(0x0300_0000_0000_0007), Switch::Paused);
    }
}
