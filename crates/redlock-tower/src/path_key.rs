use std::mem;

use axum::extract::{FromRequestParts, RawPathParams, rejection::RawPathParamsRejection};
use http::{Request, StatusCode};
use redlock_core::ResourceKey;

use crate::{KeyError, KeyExtractor};

/// Locks the resource that a path parameter of an axum route names.
///
/// Put the layer where the parameter is known: on a handler's `MethodRouter::layer`, or on
/// `Router::route_layer` when every route of that router has the parameter.
/// A request whose route has no such parameter is answered with 500, for letting it through unlocked
/// would turn a typing error into a missing lock.
/// A value that makes no valid [`ResourceKey`] is answered with 400.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::post};
/// use redlock_core::Redlock;
/// use redlock_tower::{PathKey, RedlockLayer};
///
/// fn app(redlock: Redlock) -> Router {
///     let one_per_order = RedlockLayer::new(redlock, PathKey::new("order", "order_id"));
///     Router::new().route("/orders/{order_id}/pay", post(pay).layer(one_per_order))
/// }
///
/// async fn pay() {}
/// ```
#[derive(Clone, Debug)]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct PathKey {
    class: &'static str,
    parameter: &'static str,
}

impl PathKey {
    /// Locks the resource of the class `class` that the path parameter `parameter` names.
    pub fn new(class: &'static str, parameter: &'static str) -> Self {
        Self { class, parameter }
    }

    fn missing(&self) -> KeyError {
        let detail = format!(
            "the route has no path parameter `{}` to lock",
            self.parameter
        );
        KeyError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl<B: Send> KeyExtractor<Request<B>> for PathKey {
    async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKey>, KeyError> {
        // The parameters are among the extensions, and axum reads them only from a request's parts.
        let (mut parts, ()) = Request::new(()).into_parts();
        mem::swap(&mut parts.extensions, request.extensions_mut());
        let parameters = RawPathParams::from_request_parts(&mut parts, &()).await;
        mem::swap(&mut parts.extensions, request.extensions_mut());

        let parameters = parameters.map_err(|rejection| match rejection {
            RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
                KeyError::new(StatusCode::BAD_REQUEST, "a path parameter is not UTF-8")
            }
            _ => self.missing(),
        })?;
        let value = parameters.iter().find(|(name, _)| *name == self.parameter);
        let (_, value) = value.ok_or_else(|| self.missing())?;
        Ok(Some(ResourceKey::new(self.class, value)?))
    }
}
