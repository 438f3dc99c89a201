use std::{borrow::Cow, fmt, str::FromStr};

use http::StatusCode;
use redlock_core::ResourceKey;

use crate::KeyError;

/// A class of resources, and how a text that a client sent names one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    class: &'static str,
    spelling: Spelling,
}

/// The one spelling of a value, or `None` if the text is none.
type Spelling = fn(&str) -> Option<Cow<'_, str>>;

impl Named {
    pub(crate) fn new(class: &'static str) -> Self {
        Self {
            class,
            spelling: |text| Some(Cow::Borrowed(text)),
        }
    }

    /// The resource's name is what `T` writes after it has read the text.
    pub(crate) fn parsed<T: FromStr + fmt::Display>(self) -> Self {
        let spelling: Spelling = |text| Some(Cow::Owned(text.parse::<T>().ok()?.to_string()));
        Self { spelling, ..self }
    }

    /// Returns the key of the resource that `text` names.
    pub(crate) fn key(&self, text: &str) -> Result<ResourceKey, KeyError> {
        let name = self.spelled(text)?;
        self.key_of(&name)
    }

    /// Returns the one spelling of what `text` says.
    pub(crate) fn spelled<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, KeyError> {
        (self.spelling)(text).ok_or_else(|| {
            let detail = format!("that is no valid {}", self.class);
            KeyError::new(StatusCode::BAD_REQUEST, detail)
        })
    }

    /// Returns the same class, with names that are just the text.
    #[cfg(feature = "axum")]
    pub(crate) fn as_it_is(self) -> Self {
        Self::new(self.class)
    }

    /// Returns the key of the resource with this name.
    pub(crate) fn key_of(&self, name: &str) -> Result<ResourceKey, KeyError> {
        ResourceKey::new(self.class, name).map_err(|invalid| {
            // The class is the program's; no client can do anything about it.
            match ResourceKey::new(self.class, "any") {
                Ok(_) => invalid.into(),
                Err(invalid) => KeyError::misuse(invalid.to_string()),
            }
        })
    }
}
