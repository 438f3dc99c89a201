use std::{fmt::Display, iter, mem, str::FromStr};

use ::axum::extract::{
    FromRequestParts, MatchedPath, RawPathParams, rejection::RawPathParamsRejection,
};
use http::{Request, StatusCode};
use redlock_core::{ResourceKey, ResourceKeys};

use super::header::ResourceClass;
use crate::{KeyError, KeyExtractor};

/// Locks the resource that a path parameter of an axum route names.
///
/// Put the layer where the route has the parameter: on `MethodRouter::route_layer`, or on `Router::route_layer` if
/// every route of that router has it.
/// The layer answers a request whose route has no such parameter with 500, because without this answer a typing error
/// would become a missing lock.
/// The layer answers a request that matches no route with 404; `Router::layer` sees such requests on their way to the
/// fallback.
/// The fallback may be another router, whose handlers must not run unlocked.
/// Under `Router::nest_service`, the layer cannot tell a path without a route from a route without the parameter, and
/// answers both with 500: use `route_layer` there.
/// It answers a route that has the parameter twice, as nested routers may, with 500 too, because the handler might read
/// the other one.
/// The layer answers a value that makes no valid [`ResourceKey`](redlock_core::ResourceKey) with 400.
///
/// # One resource, one spelling
///
/// By default, the key is the text in the path.
/// If the handler parses the text, `42`, `042` and `+42` may be one order to the handler and three locks here, and the
/// client can choose among them.
/// [`parsed`](Self::parsed) locks the value that the handler sees; leave it out only if the handler takes the text as
/// it is.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
/// use redlock_core::Redlock;
/// use redlock_tower::{PathKey, RedlockLayer, RequestLease};
/// use tower::ServiceExt;
///
/// async fn pay(lease: RequestLease) -> String {
///     lease.key().as_str().to_owned()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let one_per_order = RedlockLayer::new(redlock, PathKey::new("order", "order_id"));
/// let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(one_per_order));
///
/// let answer = app.oneshot(Request::post("/orders/a-7/pay").body(Body::empty())?).await?;
/// assert_eq!(to_bytes(answer.into_body(), 100).await?, "order:a-7");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct PathKey {
    first: Part,
    /// Those that are a part of the name too.
    more: Vec<Part>,
}

/// A parameter, and how it is read.
#[derive(Clone, Copy, Debug)]
struct Part {
    named: ResourceClass,
    parameter: &'static str,
}

impl PathKey {
    /// Locks the resource of the class `class` that the path parameter `parameter` names.
    pub fn new(class: &'static str, parameter: &'static str) -> Self {
        let named = ResourceClass::new(class);
        Self {
            first: Part { named, parameter },
            more: Vec::new(),
        }
    }

    /// Makes another path parameter a part of the name, so that each combination is one resource.
    ///
    /// The parts are joined by `/`.
    /// A `/` or `%` in a part is written as `%2F` or `%25`, so that no two combinations have one name.
    ///
    /// # Examples
    ///
    /// ```
    /// use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
    /// use redlock_core::Redlock;
    /// use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// use tower::ServiceExt;
    ///
    /// # async fn pay(lease: RequestLease) -> String { lease.key().as_str().to_owned() }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// // Orders are numbered by tenant.
    /// let order = PathKey::new("order", "tenant").and("order_id").parsed::<u64>();
    /// let pay = post(pay).route_layer(RedlockLayer::new(redlock, order));
    /// let app: Router = Router::new().route("/tenants/{tenant}/orders/{order_id}/pay", pay);
    ///
    /// let answer = app.oneshot(Request::post("/tenants/acme/orders/042/pay").body(Body::empty())?).await?;
    /// assert_eq!(to_bytes(answer.into_body(), 100).await?, "order:acme/42");
    /// # Ok(())
    /// # }
    /// ```
    pub fn and(mut self, parameter: &'static str) -> Self {
        let named = self.first.named.as_it_is();
        self.more.push(Part { named, parameter });
        self
    }

    /// Reads the parameter as a `T`, as the handler does, and locks what `T` writes; of several parameters, the one
    /// that was named last.
    ///
    /// The layer answers a parameter that is no `T` with 400.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # async fn pay(lease: RequestLease) -> String { lease.key().as_str().to_owned() }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let one_per_order = RedlockLayer::new(redlock, PathKey::new("order", "order_id").parsed::<u64>());
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(one_per_order));
    ///
    /// let answer = app.clone().oneshot(Request::post("/orders/042/pay").body(Body::empty())?).await?;
    /// assert_eq!(to_bytes(answer.into_body(), 100).await?, "order:42");
    /// let answer = app.oneshot(Request::post("/orders/a-7/pay").body(Body::empty())?).await?;
    /// assert_eq!(answer.status(), 400);
    /// # Ok(())
    /// # }
    /// ```
    pub fn parsed<T: FromStr + Display>(mut self) -> Self {
        let last = self.more.last_mut().unwrap_or(&mut self.first);
        last.named = last.named.parsed::<T>();
        self
    }

    /// Returns the key of the resource that these parameters name; an error is the parameter that is missing.
    fn key(&self, parameters: &RawPathParams) -> Result<Result<ResourceKey, KeyError>, Part> {
        if let Some(part) = self.parts().find(|part| part.occurs_twice(parameters)) {
            return Ok(Err(part.ambiguous()));
        }
        let first = self.first.value(parameters)?;
        if self.more.is_empty() {
            return Ok(self.first.named.key(first));
        }
        let mut name = String::new();
        for (place, part) in self.parts().enumerate() {
            let spelled = match part.named.spelled(part.value(parameters)?) {
                Ok(spelled) => spelled,
                Err(error) => return Ok(Err(error)),
            };
            if place > 0 {
                name.push('/');
            }
            // The escape first, or else that of a separator would be escaped again.
            name.push_str(&spelled.replace('%', "%25").replace('/', "%2F"));
        }
        Ok(self.first.named.key_of(&name))
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        iter::once(&self.first).chain(&self.more)
    }
}

impl Part {
    fn value<'a>(&self, parameters: &'a RawPathParams) -> Result<&'a str, Self> {
        let mut parameters = parameters.iter();
        let value = parameters.find(|(name, _)| *name == self.parameter);
        value.map(|(_, value)| value).ok_or(*self)
    }

    fn occurs_twice(&self, parameters: &RawPathParams) -> bool {
        let mut named = parameters
            .iter()
            .filter(|(name, _)| *name == self.parameter);
        named.nth(1).is_some()
    }

    fn missing(&self) -> KeyError {
        KeyError::misuse(format!(
            "the route has no path parameter `{}` to lock",
            self.parameter
        ))
    }

    /// Nested routers may give two parameters one name.
    fn ambiguous(&self) -> KeyError {
        KeyError::misuse(format!(
            "the route has two path parameters `{}`, and the handler might read the other: rename one",
            self.parameter
        ))
    }
}

impl<B: Send> KeyExtractor<Request<B>> for PathKey {
    async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
        // The parameters are among the extensions, and axum reads them only from a request's parts.
        let (mut parts, ()) = Request::new(()).into_parts();
        mem::swap(&mut parts.extensions, request.extensions_mut());
        let parameters = RawPathParams::from_request_parts(&mut parts, &()).await;
        mem::swap(&mut parts.extensions, request.extensions_mut());

        let parameters = parameters.map_err(|rejection| match rejection {
            RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
                KeyError::new(StatusCode::BAD_REQUEST, "a path parameter is not UTF-8")
            }
            _ => self.first.missing(),
        })?;
        let key = self.key(&parameters).map_err(|part| {
            match request.extensions().get::<MatchedPath>() {
                Some(_) => part.missing(),
                // On its way to a router's fallback, or to a service that routes by itself.
                None => KeyError::new(StatusCode::NOT_FOUND, "no route has this path"),
            }
        })?;
        Ok(Some(key?.into()))
    }
}
