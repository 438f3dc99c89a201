//! Which resource a request locks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Path,
    routing::{get, post},
};
use http::{HeaderName, Request, StatusCode};
use redlock_core::{Redlock, ResourceKey};
use redlock_tower::{HeaderKey, KeyError, KeyExtractor, PathKey, RedlockLayer, RequestLease};
use tower::ServiceExt;

use crate::behaviour::kit::{HEADER, Nodes, by_header, virtual_client};

async fn extract<K: KeyExtractor<Request<()>>>(
    key: &K,
    request: http::request::Builder,
) -> Result<Option<String>, StatusCode> {
    let key = key.extract(&mut request.body(()).unwrap()).await;
    key.map(|key| Some(key?.first().as_str().to_owned()))
        .map_err(|error| error.status())
}

#[tokio::test]
async fn a_header_that_is_missing_or_there_twice_is_refused_unless_it_is_optional() {
    assert_eq!(
        extract(&by_header(), Request::get("/")).await,
        Err(StatusCode::BAD_REQUEST)
    );
    let optional = by_header().optional();
    assert_eq!(extract(&optional, Request::get("/")).await, Ok(None));
    let twice = Request::get("/").header(HEADER, "1").header(HEADER, "2");
    assert_eq!(
        extract(&by_header(), twice).await,
        Err(StatusCode::BAD_REQUEST)
    );
}

#[tokio::test]
async fn a_resource_has_one_spelling() {
    let number = by_header().parsed::<u64>();
    for spelling in ["42", "042", "+42"] {
        let named = extract(&number, Request::get("/").header(HEADER, spelling)).await;
        assert_eq!(named, Ok(Some("test:42".to_owned())), "{spelling}");
    }
    for none in ["-42", "42 ", "x", ""] {
        let refused = extract(&number, Request::get("/").header(HEADER, none)).await;
        assert_eq!(refused, Err(StatusCode::BAD_REQUEST), "{none:?}");
    }
}

#[tokio::test]
async fn a_class_that_cannot_be_is_not_blamed_on_the_client() {
    let key = HeaderKey::new("shop:order", HeaderName::from_static(HEADER));
    let named = extract(&key, Request::get("/").header(HEADER, "42")).await;
    assert_eq!(named, Err(StatusCode::INTERNAL_SERVER_ERROR));
}

/// `Path<u64>` reads `42`, `042` and `+42` alike.
#[tokio::test]
async fn no_spelling_of_a_path_gets_past_the_lock() {
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entered, peak) = (Arc::clone(&inside), Arc::clone(&most));
    let pay = async move |_: Path<u64>| {
        let now = entered.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        entered.fetch_sub(1, Ordering::SeqCst);
    };
    let key = PathKey::new("order", "order_id").parsed::<u64>();
    let layer = RedlockLayer::new(Nodes::new().client().build().await.unwrap(), key);
    let app = Router::new().route("/orders/{order_id}", get(pay).layer(layer));
    let ask = |path: &'static str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request)
    };
    let answers = tokio::join!(ask("/orders/42"), ask("/orders/042"), ask("/orders/+42"));
    for answer in [answers.0, answers.1, answers.2] {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

async fn path_app() -> (Redlock, Router) {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = |parameter| RedlockLayer::new(redlock.clone(), PathKey::new("order", parameter));
    let handler = async |Path(_): Path<(String, String)>, lease: RequestLease| {
        lease.key().as_str().to_owned()
    };
    let app = Router::new()
        .route(
            "/shops/{shop}/orders/{order}",
            post(handler).layer(layer("order")),
        )
        .route("/none", get(|| async {}).layer(layer("order")))
        .route("/typo/{order}", get(|| async {}).layer(layer("ordre")));
    (redlock, app)
}

async fn get_path(path: &str, method: &str) -> (StatusCode, String) {
    let (_redlock, app) = path_app().await;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap();
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 10_000)
        .await
        .unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_path_parameter_names_the_resource_and_stays_for_the_handler() {
    let locked = (StatusCode::OK, "order:4 2".to_owned());
    assert_eq!(get_path("/shops/7/orders/4%202", "POST").await, locked);
}

#[tokio::test(start_paused = true)]
async fn several_path_parameters_name_one_resource_for_each_combination() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = |key| RedlockLayer::new(redlock.clone(), key);
    let key = || PathKey::new("order", "shop").and("order");
    let handler = async |lease: RequestLease| lease.key().as_str().to_owned();
    let app: Router = Router::new()
        .route("/texts/{shop}/{order}", post(handler).layer(layer(key())))
        .route(
            "/numbers/{order}/{shop}",
            post(handler).layer(layer(key().parsed::<u64>())),
        )
        .route("/one/{shop}", post(handler).layer(layer(key())))
        .route("/other/{order}", post(handler).layer(layer(key())));
    let ask = async |path: &str| {
        let request = Request::post(path).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1_000).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    };
    // What looks the same once it is joined, and what the others would be if they were escaped.
    let texts = [
        ("a/b/c", None),
        ("a/bc", Some("order:a/bc")),
        ("ab/c", Some("order:ab/c")),
        ("a%2Fb/c", Some("order:a%2Fb/c")),
        ("a/b%2Fc", Some("order:a/b%2Fc")),
        ("a%252Fb/c", Some("order:a%252Fb/c")),
    ];
    for (path, key) in texts {
        let (status, body) = ask(&format!("/texts/{path}")).await;
        assert_eq!(key.is_some(), status == 200, "{path}");
        assert_eq!(
            key.unwrap_or_default(),
            if status == 200 { &*body } else { "" }
        );
    }
    // Only what was named last is read as a number, wherever it is in the path.
    assert_eq!(
        ask("/numbers/042/07").await,
        (200, "order:07/42".to_owned())
    );
    assert_eq!(ask("/numbers/x/7").await.0, 400);
    for missing in ["/one/7", "/other/42"] {
        assert_eq!(ask(missing).await.0, 500, "{missing}");
    }
}

/// Through unlocked would be worse than an error.
#[tokio::test(start_paused = true)]
async fn a_parameter_that_the_route_does_not_have_is_the_programs_fault() {
    for path in ["/none", "/typo/42"] {
        let (status, body) = get_path(path, "GET").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        assert!(body.contains("path parameter"), "{body}");
    }
}

/// The tenant and the order have one name, as nested routers may give them: it is not for the layer to choose.
#[tokio::test(start_paused = true)]
async fn a_parameter_that_the_route_has_twice_is_the_programs_fault() {
    let redlock = virtual_client(&Nodes::new()).await;
    for key in [
        PathKey::new("order", "id"),
        PathKey::new("order", "shop").and("id"),
    ] {
        let pay = post(async || "paid").route_layer(RedlockLayer::new(redlock.clone(), key));
        let orders = Router::new().route("/shops/{shop}/orders/{id}/pay", pay);
        let app: Router = Router::new().nest("/tenants/{id}", orders);
        let path = "/tenants/1/shops/2/orders/42/pay";
        let request = Request::post(path).body(Body::empty()).unwrap();
        let answer = app.oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(answer.into_body(), 1_000).await.unwrap();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("two path parameters `id`"), "{body}");
    }
}

#[tokio::test]
async fn a_closure_names_the_resource_or_refuses_with_its_own_status() {
    let by_query = |request: &Request<_>| match request.uri().query() {
        None => Ok(None),
        Some("") => Err(KeyError::new(StatusCode::UNAUTHORIZED, "who are you?")),
        Some(query) => Ok(Some(ResourceKey::new("query", query)?)),
    };
    assert_eq!(extract(&by_query, Request::get("/")).await, Ok(None));
    assert_eq!(
        extract(&by_query, Request::get("/?")).await,
        Err(StatusCode::UNAUTHORIZED)
    );
    assert_eq!(
        extract(&by_query, Request::get("/?a")).await,
        Ok(Some("query:a".to_owned()))
    );
}
