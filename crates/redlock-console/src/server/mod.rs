//! The routes of the console, and what every one of them has: access, headers, and no request from another site.

mod actions;
mod events;
mod pages;

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{Next, from_fn_with_state, map_response},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tower_http::csrf::ProtectionError;

use crate::{Access, Console};

/// Returns the routes of a console, to be mounted where one likes, as with `.nest("/ops/locks", …)`.
///
/// All links are relative, so the page works under any prefix, also behind a proxy that takes the prefix away.
/// The prefix itself, with a slash at its end or without, leads to the page.
///
/// | route | answers |
/// |---|---|
/// | `GET ./overview` | the page, complete without a script; `GET ./` leads to it |
/// | `GET ./key?name=`, `GET ./job?name=` | the page of one key, of one job |
/// | `GET ./snapshot` | the [`Snapshot`](crate::Snapshot) as JSON, with an `ETag` that stays the same for some seconds while only times pass |
/// | `GET ./events` | a stream of the sections that have changed, at most one event a second |
/// | `GET ./console.css`, `GET ./console.js` | the style and the script |
/// | `POST ./actions/…` | an [action](crate#actions) |
///
/// The page, the snapshot and the stream have the parameters `q`, a text that the name of a key or a job, or a holder, has,
/// and `kind`, one of `exclusive`, `shared`, `slot`, `job`.
/// A stream ends by itself after five minutes; browsers open it again.
pub fn router(console: Console) -> Router {
    let csrf = console.0.csrf.clone();
    Router::new()
        .route("/", get(pages::begin))
        .route("/overview", get(pages::overview))
        .route("/key", get(pages::key))
        .route("/job", get(pages::job))
        .route("/snapshot", get(pages::snapshot))
        .route("/events", get(events::events))
        .route("/console.css", get(pages::style))
        .route("/console.js", get(pages::script))
        .route("/actions/{verb}", post(actions::act))
        .route("/actions/backfill/count", get(actions::count))
        .fallback(async || (StatusCode::NOT_FOUND, "there is no such page\n"))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(csrf.with_rejection_response(from_another_site))
        .layer(from_fn_with_state(console.clone(), guard))
        .layer(map_response(with_headers))
        .with_state(console)
}

/// Refuses a request whose sender may not make it, before anything else looks at it.
async fn guard(State(console): State<Console>, request: Request, next: Next) -> Response {
    if console.is_closed() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the console is closed\n").into_response();
    }
    let (parts, body) = request.into_parts();
    let access = (console.0.access)(&parts);
    let looks = matches!(parts.method, Method::GET | Method::HEAD);
    match access {
        Access::None => (StatusCode::FORBIDDEN, "no access\n").into_response(),
        Access::Read if !looks => {
            let message = "this console only shows: it was not started to operate, or you may not";
            (StatusCode::FORBIDDEN, message).into_response()
        }
        Access::Read | Access::Operate => {
            let mut request = Request::from_parts(parts, body);
            request.extensions_mut().insert(access);
            next.run(request).await
        }
    }
}

fn from_another_site(_: ProtectionError) -> Response<Body> {
    let message = "this request comes from another site: an action is only taken from the console's own page\n";
    (StatusCode::FORBIDDEN, message).into_response()
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let of_a_moment = HeaderValue::from_static("no-cache");
    headers.entry(header::CACHE_CONTROL).or_insert(of_a_moment);
    response
}

/// No script and no style but the console's own, no other host, and no page around it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 16 * 1_024;
