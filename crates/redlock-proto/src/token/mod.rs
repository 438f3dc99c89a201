//! Fencing tokens: how they are counted, agreed upon and checked.

mod fence;

use std::{error::Error, fmt, num::NonZero};

pub use self::fence::{Fence, StaleToken};

/// A number that grows with every lease on a resource: of two holders, the later one has the greater token.
///
/// A lease can end before its holder notices, for example while its process is paused or its write is on the way.
/// So let the resource itself refuse late writes: it remembers the greatest token that it has seen, and refuses a
/// smaller one; see [`Fence`](crate::Fence).
///
/// You can compare tokens of one resource only.
/// They are not consecutive, and they fit a signed 64-bit column and an IEEE double without loss.
///
/// ```
/// # use redlock_proto::FencingToken;
///
/// let token = FencingToken::new(1_795_177_631_473_215).unwrap();
/// assert!(token < FencingToken::new(1_795_177_631_473_216).unwrap());
/// assert_eq!(i64::from(token), 1_795_177_631_473_215);
/// assert_eq!(token.to_string().parse(), Ok(token));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FencingToken(
    // invariant: to MAX
    NonZero<u64>,
);

impl FencingToken {
    /// The greatest token, 2^53 - 2^20: scripts on the nodes count in doubles, which are exact below
    /// 2^53.
    pub const MAX: Self = Self(NonZero::<u64>::MIN.saturating_add((1 << 53) - (1 << 20) - 1));

    /// Returns the token of this value; `None` unless it is from 1 to [`MAX`](Self::MAX).
    pub const fn new(value: u64) -> Option<Self> {
        match NonZero::new(value) {
            Some(value) if value.get() <= Self::MAX.get() => Some(Self(value)),
            _ => None,
        }
    }

    /// Returns the value.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.get()
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        // Below 2^53, so nothing is cut off.
        token.get().cast_signed()
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = InvalidToken;

    fn try_from(value: u64) -> Result<Self, InvalidToken> {
        Self::new(value).ok_or(InvalidToken(()))
    }
}

impl TryFrom<i64> for FencingToken {
    type Error = InvalidToken;

    fn try_from(value: i64) -> Result<Self, InvalidToken> {
        u64::try_from(value)
            .map_err(|_| InvalidToken(()))?
            .try_into()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for FencingToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let value: u64 = text.parse().map_err(|_| InvalidToken(()))?;
        value.try_into()
    }
}

/// A number or text that is no [`FencingToken`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidToken(());

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a fencing token is a whole number from 1 to {}",
            FencingToken::MAX
        )
    }
}

impl Error for InvalidToken {}

/// Returns what a node's counter becomes when it grants: greater than before, and what was proposed if that is
/// greater still.
///
/// `floor` stands for what the node's counters were before it lost them.
pub const fn next_counter(stored: u64, floor: u64, proposal: u64) -> u64 {
    let least = if stored > floor { stored } else { floor }.saturating_add(1);
    if proposal > least { proposal } else { least }
}

/// The token that follows from the counters that came with a majority of votes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every case")]
pub enum Settled {
    /// A majority stored this very number while the key was the attempt's: it is the token.
    Agreed(u64),
    /// Too few stored the greatest number.
    ///
    /// It becomes the token once a majority has it: it must be written back to these nodes, as an extension.
    /// Only nodes count whose vote counted and that still have the attempt's key.
    /// A later holder could else meet a majority that knows only smaller numbers.
    WriteBack {
        /// The number.
        counter: u64,
        /// The nodes whose votes counted.
        nodes: Vec<usize>,
    },
}

/// The tokens that a lease has reserved, for its holder and those it is handed over to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TokenBlock {
    first: FencingToken,
    // invariant: not less than `first`
    last: FencingToken,
}

impl TokenBlock {
    /// Makes a block of `length` tokens from `first` on; `None` beyond the range of tokens.
    pub fn new(first: u64, length: u32) -> Option<Self> {
        let last = first.checked_add(u64::from(length.max(1)) - 1)?;
        Some(Self {
            first: FencingToken::new(first)?,
            last: FencingToken::new(last)?,
        })
    }

    /// Returns the present holder's token.
    pub const fn first(&self) -> FencingToken {
        self.first
    }

    /// Returns the last token that is reserved.
    pub const fn last(&self) -> FencingToken {
        self.last
    }

    /// Returns what is left for the next holder, whose token is greater; `None` if no token is left.
    pub fn hand_over(self) -> Option<Self> {
        let first = FencingToken::new(self.first.get() + 1)?;
        (first <= self.last).then_some(Self { first, ..self })
    }
}

/// Decides about the votes of an attempt that a majority has granted: nodes, each with its counter.
pub fn settle(votes: impl Iterator<Item = (usize, u64)> + Clone, majority: usize) -> Settled {
    let counters = votes.clone().map(|(_, counter)| counter);
    let counter = counters.clone().max().unwrap_or_default();
    let agreed = counters.filter(|other| *other == counter).count();
    if agreed >= majority {
        Settled::Agreed(counter)
    } else {
        Settled::WriteBack {
            counter,
            nodes: votes.map(|(node, _)| node).collect(),
        }
    }
}
