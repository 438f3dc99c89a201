use std::fmt;

/// The identity of an informant, which it has given itself: the first 64 bits of its own id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InformantId(u64);

impl InformantId {
    /// Returns an identity of this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Reads an id of at least 16 hexadecimal digits, as Sentinels and nodes of a Cluster have it.
    pub fn read(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let first = text.get(..DIGITS).filter(|_| is_hex)?;
        u64::from_str_radix(first, 16).ok().map(Self)
    }
}

impl fmt::Display for InformantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The informants that count for a mark.
///
/// A majority is more than half of [`count`](Self::count), and all of it is on the roll.
/// Two majorities then have an informant in common that has kept its file, because at most `count` informants run at a
/// time.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Roll {
    count: usize,
    // invariant: sorted, no id twice
    ids: Vec<InformantId>,
}

impl Roll {
    /// Returns the roll with these ids, where there are `count` informants.
    pub fn new(count: usize, ids: impl IntoIterator<Item = InformantId>) -> Self {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self { count, ids }
    }

    /// Reads the text under which a mark has it, such as `3:09af…,5c21…`.
    pub fn read(text: &str) -> Option<Self> {
        let (count, ids) = text.split_once(':')?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        let ids = ids.split(',').map(InformantId::read);
        Some(Self::new(count, ids.collect::<Option<Vec<_>>>()?))
    }

    /// Returns how many informants there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns how many of them are a majority.
    pub const fn majority(&self) -> usize {
        self.count / 2 + 1
    }

    /// Returns the ids that count, in order.
    pub fn ids(&self) -> &[InformantId] {
        &self.ids
    }

    /// Returns whether an id counts.
    pub fn has(&self, id: InformantId) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

impl fmt::Display for Roll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        for (place, id) in self.ids.iter().enumerate() {
            let sign = if place == 0 { ':' } else { ',' };
            write!(f, "{sign}{id}")?;
        }
        Ok(())
    }
}

/// The part that only the mark of a named server has: the epoch under which it votes, and the roll.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must fill in every part of it"
)]
pub struct NamedMark {
    /// The epoch under which the informants name the server.
    pub epoch: u64,
    /// The informants that count.
    pub roll: Roll,
}

impl fmt::Display for NamedMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.roll)
    }
}

/// How many digits of an id are read.
const DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> InformantId {
        InformantId::new(number)
    }

    #[test]
    fn a_roll_is_read_as_it_is_written() {
        let roll = Roll::new(3, [id(9), id(2), id(9)]);
        assert_eq!(roll.to_string(), "3:0000000000000002,0000000000000009");
        assert_eq!(Roll::read(&roll.to_string()), Some(roll.clone()));
        assert_eq!(roll.majority(), 2);
        assert!(roll.has(id(9)) && !roll.has(id(3)));
        for nonsense in [
            "",
            "3",
            "3:",
            "x:0000000000000002",
            "0:0000000000000002",
            "3:2",
        ] {
            assert_eq!(Roll::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn an_id_is_read_by_its_first_digits() {
        let long = "00000000000000ffaaaaaaaaaaaaaaaaaaaaaaaa";
        assert_eq!(InformantId::read(long), Some(id(255)));
        for nonsense in ["", "00ff", "zz000000000000ff", "00000000000000f\u{e9}"] {
            assert_eq!(InformantId::read(nonsense), None, "{nonsense}");
        }
    }
}
