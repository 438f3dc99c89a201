/// What the sender of a request may do.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "nothing, looking, or acting")]
pub enum Access {
    /// Nothing: every request is refused.
    None,
    /// Looks at everything, and changes nothing.
    #[default]
    Read,
    /// Looks at everything, and acts on jobs and keys.
    Operate,
}
