/// The mode of a lease: exclusive, or shared with other readers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a holder has the resource alone, or does not"
)]
pub enum Mode {
    /// No other holder has the resource at the same time: a writer.
    #[default]
    Exclusive,
    /// Other holders may share the resource: a reader.
    Shared,
}

impl From<Mode> for redlock_proto::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
        }
    }
}
