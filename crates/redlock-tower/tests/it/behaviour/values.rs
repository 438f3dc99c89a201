//! Keys that are in a value, keys that are awaited, and keys behind a `BoxedKey`.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Json, body::Body};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use redlock_core::{FencingToken, Redlock, ResourceKey, ResourceKeys};
use redlock_tower::{
    BoxedKey, ExtensionKey, KeyError, KeyExtractor, LockKey, RedlockLayer, Rejection,
    RejectionKind, RequestLease,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, Nodes, is_free, request, virtual_client};

/// What an outer layer has found out about the request.
#[derive(Clone)]
struct User(&'static str);

impl LockKey for User {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        match self.0 {
            "guest" => Err(KeyError::new(StatusCode::FORBIDDEN, "guests lock nothing")),
            name => Ok(ResourceKey::new("user", name)?.into()),
        }
    }
}

/// What a handler behind `key` sees of `request`: its key, the token it was told, and its lease's token.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    key: Option<String>,
    told: Option<FencingToken>,
    token: Option<FencingToken>,
}

/// The token that a key was told of, in a request's extensions.
#[derive(Clone)]
struct Told(FencingToken);

async fn seen<K>(redlock: &Redlock, key: K, request: Request<Body>) -> Result<Seen, Rejection>
where
    K: KeyExtractor<Request<Body>>,
{
    let handler = service_fn(async |request: Request<Body>| {
        let lease = request.extensions().get::<RequestLease>();
        let seen = Seen {
            key: lease.map(|lease| lease.key().as_str().to_owned()),
            told: request.extensions().get().map(|Told(token)| *token),
            token: lease.map(|lease| lease.token()),
        };
        let mut response = http::Response::new(Body::empty());
        response.extensions_mut().insert(Arc::new(seen));
        Ok::<_, Infallible>(response)
    });
    let layer = RedlockLayer::new(redlock.clone(), key);
    let mut response = layer.layer(handler).oneshot(request).await.unwrap();
    match response.extensions_mut().remove::<Arc<Seen>>() {
        Some(seen) => Ok(Arc::into_inner(seen).unwrap()),
        None => Err(response.extensions_mut().remove::<Rejection>().unwrap()),
    }
}

async fn key_seen<K: KeyExtractor<Request<Body>>>(key: K, value: Option<User>) -> Option<String> {
    let redlock = virtual_client(&Nodes::new()).await;
    let mut request = Request::new(Body::empty());
    if let Some(user) = value {
        request.extensions_mut().insert(Arc::new(user.clone()));
        request.extensions_mut().insert(user);
    }
    seen(&redlock, key, request).await.unwrap().key
}

#[tokio::test(start_paused = true)]
async fn a_value_in_the_extensions_names_the_resource() {
    let by_user = ExtensionKey::<User>::new();
    let ann = Some("user:ann".to_owned());
    assert_eq!(key_seen(by_user.clone(), Some(User("ann"))).await, ann);
    assert_eq!(key_seen(by_user.optional(), Some(User("ann"))).await, ann);
}

#[tokio::test(start_paused = true)]
async fn what_derefs_to_a_value_names_the_resource_too() {
    let shared = ExtensionKey::<Arc<User>>::new();
    let ann = Some("user:ann".to_owned());
    assert_eq!(key_seen(shared, Some(User("ann"))).await, ann);
    let key = |value: &dyn LockKey| value.lock_key().unwrap().first().as_str().to_owned();
    assert_eq!(key(&Json(User("bob"))), "user:bob");
    assert_eq!(key(&Box::new(Arc::new(User("bob")))), "user:bob");
}

#[tokio::test(start_paused = true)]
async fn without_the_value_a_request_is_refused_unless_it_is_optional() {
    let redlock = virtual_client(&Nodes::new()).await;
    let by_user = ExtensionKey::<User>::new();
    let rejection = seen(&redlock, by_user.clone(), Request::new(Body::empty())).await;
    let rejection = rejection.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Misuse);
    assert_eq!(rejection.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = rejection.problem().into_body();
    let detail = std::str::from_utf8(&body).unwrap();
    for hint in ["User", "must be outside of `RedlockLayer`"] {
        assert!(detail.contains(hint), "{detail}");
    }
    assert_eq!(key_seen(by_user.optional(), None).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_value_can_refuse_the_request() {
    let redlock = virtual_client(&Nodes::new()).await;
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(User("guest"));
    // Optional is the value and not what it says.
    let by_user = ExtensionKey::<User>::new().optional();
    let rejection = seen(&redlock, by_user, request).await.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Key);
    assert_eq!(rejection.status(), StatusCode::FORBIDDEN);
}

/// Looks a header up somewhere else, and counts how it was asked.
#[derive(Clone, Default)]
struct Lookup(Arc<Calls>);

#[derive(Default)]
struct Calls {
    now: AtomicUsize,
    awaited: AtomicUsize,
    granted: AtomicUsize,
}

impl Lookup {
    /// How often `extract_now`, `extract` and `granted` were called.
    fn calls(&self) -> [usize; 3] {
        let Calls {
            now,
            awaited,
            granted,
        } = &*self.0;
        [now, awaited, granted].map(|calls| calls.load(SeqCst))
    }
}

impl KeyExtractor<Request<Body>> for Lookup {
    async fn extract(&self, request: &mut Request<Body>) -> Result<Option<ResourceKeys>, KeyError> {
        self.0.awaited.fetch_add(1, SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        match request.uri().path() {
            "/free" => Ok(None),
            "/bad" => Err(KeyError::new(StatusCode::NOT_FOUND, "there is none")),
            // The request may be read and changed while the key is awaited.
            _ => {
                let body = std::mem::take(request.body_mut()).collect().await.unwrap();
                Ok(Some(
                    ResourceKey::new("body", body.to_bytes().len())?.into(),
                ))
            }
        }
    }

    fn extract_now(
        &self,
        request: &mut Request<Body>,
    ) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        self.0.now.fetch_add(1, SeqCst);
        match request.uri().path() {
            "/now" => Some(
                ResourceKey::new("path", "now")
                    .map(|key| Some(key.into()))
                    .map_err(Into::into),
            ),
            "/now-free" => Some(Ok(None)),
            "/now-bad" => Some(Err(KeyError::new(StatusCode::GONE, "no longer"))),
            _ => None,
        }
    }

    fn granted(&self, request: &mut Request<Body>, lease: &RequestLease) {
        self.0.granted.fetch_add(1, SeqCst);
        request.extensions_mut().insert(Told(lease.token()));
    }
}

/// What comes of a request for `path` to a layer with the key `K` made of a `Lookup`, and its calls.
async fn looked_up<K>(
    path: &str,
    key: impl Fn(Lookup) -> K,
) -> (Result<Option<String>, u16>, [usize; 3])
where
    K: KeyExtractor<Request<Body>>,
{
    let redlock = virtual_client(&Nodes::new()).await;
    let lookup = Lookup::default();
    let request = Request::get(path).body(Body::from("four")).unwrap();
    let outcome = match seen(&redlock, key(lookup.clone()), request).await {
        Ok(seen) => {
            assert_eq!(seen.told, seen.token, "{path}: the token that was granted");
            Ok(seen.key)
        }
        Err(rejection) => Err(rejection.status().as_u16()),
    };
    (outcome, lookup.calls())
}

type Case = (&'static str, Result<Option<&'static str>, u16>, [usize; 3]);

const CASES: [Case; 6] = [
    ("/now", Ok(Some("path:now")), [1, 0, 1]),
    ("/now-free", Ok(None), [1, 0, 0]),
    ("/now-bad", Err(410), [1, 0, 0]),
    ("/later", Ok(Some("body:4")), [1, 1, 1]),
    ("/free", Ok(None), [1, 1, 0]),
    ("/bad", Err(404), [1, 1, 0]),
];

#[tokio::test(start_paused = true)]
async fn a_key_is_awaited_only_if_it_is_not_there_at_once() {
    for (path, outcome, calls) in CASES {
        let outcome = outcome.map(|key| key.map(str::to_owned));
        let found = looked_up(path, |lookup| lookup).await;
        assert_eq!(found, (outcome, calls), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_boxed_key_does_what_the_key_in_it_does() {
    for (path, outcome, calls) in CASES {
        let outcome = outcome.map(|key| key.map(str::to_owned));
        // A clone, for it is the same key; and a box in a box.
        let twice = |lookup| BoxedKey::new(BoxedKey::new(lookup).clone());
        assert_eq!(looked_up(path, twice).await, (outcome, calls), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_while_its_key_is_awaited_holds_nothing() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let lookup = Lookup::default();
    let work = seen(&redlock, lookup.clone(), request(KEY));
    let limit = Duration::from_millis(10);
    assert!(tokio::time::timeout(limit, work).await.is_err());
    assert_eq!(lookup.calls(), [1, 1, 0]);
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}
