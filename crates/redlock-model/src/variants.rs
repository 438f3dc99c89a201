//! Enums whose variants have names on the command line.

use std::{error::Error, fmt};

/// Declares an enum, with the name of each variant, and how a user calls any of them.
macro_rules! variants {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident: $what:literal {
            $($(#[$doc:meta])* $Variant:ident => $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum $Enum {
            $($(#[$doc])* $Variant,)+
        }

        impl $Enum {
            /// All there are.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $Enum {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
                found.ok_or_else(|| $crate::UnknownName::new($what, name, &Self::ALL.map(Self::name)))
            }
        }
    };
}
pub(crate) use variants;

/// A name that no mutation or role has; the text says which there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownName(String);

impl UnknownName {
    pub(crate) fn new(what: &str, name: &str, names: &[&str]) -> Self {
        let names = names.join(", ");
        Self(format!("there is no {what} '{name}', only {names}"))
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UnknownName {}
