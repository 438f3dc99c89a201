//! The pages, and the snapshot as JSON.

use axum::{
    Extension,
    extract::{OriginalUri, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use crate::{
    Access, Console,
    filter::Filter,
    page::{self, PageView},
};

/// The filter of a page in its address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FilterQuery {
    q: String,
    kind: String,
}

/// The name of a key or a job in an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NameQuery {
    name: String,
}

/// The answer to a request that cannot be answered.
pub(super) type Refused = (StatusCode, String);

impl FilterQuery {
    /// Returns the filter for a viewer, or a refusal.
    pub(super) fn filter(&self, access: Access) -> Result<Filter, Refused> {
        Filter::new(&self.q, &self.kind, access).map_err(|why| refused(&why))
    }
}

/// Leads from where the console is mounted to the page with everything.
///
/// That page has an address of its own, because a router that is nested at `/ops/locks` is not asked for `/ops/locks/`, and
/// relative links lead elsewhere without the slash.
pub(super) async fn begin(OriginalUri(uri): OriginalUri) -> Redirect {
    let folder = uri.path().rsplit('/').next().unwrap_or_default();
    let folder = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    let query = uri
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    Redirect::temporary(&format!("{folder}overview{query}"))
}

/// The page with everything.
pub(super) async fn overview(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    Query(search): Query<FilterQuery>,
) -> Result<Html<String>, Refused> {
    let filter = search.filter(access)?;
    let page = console.0.hub.look().await.page(&filter);
    Ok(Html(page::render(&page.snapshot, &page.view)))
}

/// The page of one key.
pub(super) async fn key(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    Query(NameQuery { name }): Query<NameQuery>,
) -> Result<Html<String>, Refused> {
    let found = console.0.hub.key(&name).await;
    let found =
        found.map_err(|invalid| refused(&format!("name is not that of a key: {invalid}")))?;
    Ok(Html(page::render_key(&found, &view(access))))
}

/// The page of one job.
pub(super) async fn job(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    Query(NameQuery { name }): Query<NameQuery>,
) -> Result<Html<String>, Refused> {
    let look = console.0.hub.look().await;
    let found = console
        .0
        .hub
        .job(&name)
        .await
        .map_err(|why| refused(&why))?;
    Ok(Html(page::render_job(
        &found,
        look.snapshot.at_ms,
        &view(access),
    )))
}

/// The snapshot as JSON; 304 without a body if its reader has it already, up to the time that has passed.
pub(super) async fn snapshot(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    Query(search): Query<FilterQuery>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let filter = search.filter(access)?;
    let page = console.0.hub.look().await.page(&filter);
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known
        .and_then(|known| known.to_str().ok())
        .unwrap_or_default();
    let tag = [(header::ETAG, page.etag.clone())];
    if known.split(',').any(|known| known.trim() == page.etag) {
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    let json = serde_json::to_string(&page.snapshot);
    let json = json.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((tag, kind, json).into_response())
}

pub(super) async fn style() -> Response {
    (
        [(header::CONTENT_TYPE, "text/css; charset=utf-8")],
        page::CSS,
    )
        .into_response()
}

pub(super) async fn script() -> Response {
    let kind = "text/javascript; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], page::SCRIPT).into_response()
}

pub(super) fn view(access: Access) -> PageView {
    PageView {
        access,
        ..PageView::default()
    }
}

fn refused(why: &str) -> Refused {
    (StatusCode::BAD_REQUEST, format!("{why}\n"))
}
