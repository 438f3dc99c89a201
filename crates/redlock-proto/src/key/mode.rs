/// The mode in which a holder has its keys: exclusive, or shared with other readers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every mode")]
pub enum Mode {
    /// No other holder has the keys at the same time: a writer.
    #[default]
    Exclusive,
    /// Other holders may share the keys: a reader.
    Shared,
}
