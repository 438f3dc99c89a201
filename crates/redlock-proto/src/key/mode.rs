/// The mode in which keys are held, which says who else may hold them at the same time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every mode")]
pub enum Mode {
    /// Nobody.
    #[default]
    Exclusive,
    /// Others that share them.
    Shared,
}
