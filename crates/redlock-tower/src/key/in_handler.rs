use redlock_core::ResourceKeys;

use crate::{KeyError, KeyExtractor};

/// Locks nothing by itself: the handler does, by the extractor `Locked` (with the feature `axum`).
///
/// For keys that no layer can see, in the request's body for one.
/// The layer watches over the locks that the handler takes as over its own, and holds them as long; its settings are
/// theirs, where the [`LockKey`](crate::LockKey) does not say otherwise.
///
/// It is for [`RedlockLayer`](crate::RedlockLayer); in a [generic](crate::generic) layer it locks nothing at all.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is a name and has no parts")]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct InHandler;

impl<Req: Send> KeyExtractor<Req> for InHandler {
    async fn extract(&self, _: &mut Req) -> Result<Option<ResourceKeys>, KeyError> {
        Ok(None)
    }

    fn extract_now(&self, _: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(Ok(None))
    }

    fn leaves_it_to_the_handler(&self) -> bool {
        true
    }
}
