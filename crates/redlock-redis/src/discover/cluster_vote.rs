/// One of the votes of a Cluster, which has its keys in a slot of its own.
///
/// A Cluster of masters with as many slots each, in their order, has each vote on another master: the slot is in the middle
/// of as many equal parts as there are votes.
/// It depends on the namespace and on the number of votes only, because clients that placed a vote by the slots' owners of
/// the moment would place it differently after slots have moved, and would not exclude each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ClusterVote {
    number: u8,
    of: u8,
}

impl ClusterVote {
    /// The most votes that a Cluster may have.
    pub const MOST: u8 = 9;

    /// Returns all votes of a Cluster that has this number of them; `None` if that is no odd number from 3 to
    /// [`MOST`](Self::MOST).
    pub fn all(of: u8) -> Option<impl Iterator<Item = Self>> {
        let is_number = (3..=Self::MOST).contains(&of) && of % 2 == 1;
        is_number.then(|| (1..=of).map(move |number| Self { number, of }))
    }

    /// Reads one from `2of3`.
    pub fn read(text: &str) -> Option<Self> {
        let (number, of) = text.split_once("of")?;
        let number: u8 = number.parse().ok()?;
        Self::all(of.parse().ok()?)?.find(|vote| vote.number == number)
    }

    /// Returns which of the votes it is, from 1.
    pub const fn number(self) -> u8 {
        self.number
    }

    /// Returns how many votes the Cluster has.
    pub const fn of(self) -> u8 {
        self.of
    }

    /// Returns the hash tag of its keys, such as `redlock:2of3:1`; it stands in place of the namespace in them.
    pub fn tag(self, namespace: &str) -> String {
        let (number, of) = (u32::from(self.number), u32::from(self.of));
        // The middle tenth of its part: so it is far enough from others where there are more masters, too.
        let bound = |twentieth: u32| (20 * (number - 1) + twentieth) * u32::from(SLOTS) / (20 * of);
        let slots = bound(9)..bound(11);
        let mut tags = (0_u32..).map(|count| format!("{namespace}:{self}:{count}"));
        let tag = tags.find(|tag| slots.contains(&slot_of(tag).into()));
        // invariant: of many texts, some are in a range of slots
        tag.expect("there is one")
    }
}

impl std::fmt::Display for ClusterVote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}of{}", self.number, self.of)
    }
}

/// Returns the slot of the keys with this hash tag in a Cluster.
///
/// Source: <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>, CRC16.
pub(crate) fn slot_of(tag: &str) -> u16 {
    let crc = tag.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            let polynomial = if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            crc << 1 ^ polynomial
        })
    });
    crc % SLOTS
}

const SLOTS: u16 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // Its example, and answers of a server to CLUSTER KEYSLOT.
        assert_eq!(slot_of("123456789"), 0x31c3);
        assert_eq!(slot_of("user1000"), 3_443);
        assert_eq!(slot_of("redlock"), 2_639);
    }

    // Shows: R7.9.
    #[test]
    fn each_vote_is_on_another_of_as_many_masters_or_more() {
        for (of, masters) in [
            (3, 3),
            (3, 4),
            (3, 5),
            (5, 5),
            (5, 6),
            (7, 7),
            (7, 10),
            (9, 9),
        ] {
            for namespace in ["redlock", "billing", "a", "b.c-d_e"] {
                let votes = ClusterVote::all(of).unwrap();
                let owner = |vote: ClusterVote| {
                    u32::from(slot_of(&vote.tag(namespace))) * masters / u32::from(SLOTS)
                };
                let mut owners: Vec<u32> = votes.map(owner).collect();
                owners.dedup();
                assert_eq!(
                    owners.len(),
                    usize::from(of),
                    "{namespace}: {of} of {masters}"
                );
            }
        }
    }

    #[test]
    fn a_vote_is_told_by_its_text_and_in_its_tag() {
        let second = ClusterVote::read("2of3").unwrap();
        assert_eq!((second.number(), second.of()), (2, 3));
        assert_eq!(second.to_string(), "2of3");
        assert!(second.tag("billing").starts_with("billing:2of3:"));
        for wrong in ["0of3", "4of3", "1of1", "1of4", "1of11", "2", "of3", ""] {
            assert_eq!(ClusterVote::read(wrong), None, "{wrong}");
        }
    }
}
