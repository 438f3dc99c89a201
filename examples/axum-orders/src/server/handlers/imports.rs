use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use redlock_tower::RequestLease;
use serde::{Deserialize, Serialize};

use crate::{
    server::{error::AppError, partners, state::App},
    store::StoreError,
};

#[derive(Debug, Deserialize)]
pub(crate) struct NewCatalogue {
    articles: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Imported {
    import_id: i64,
    articles: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct CatalogueView {
    articles: i64,
    /// From how many imports they are, which should be one.
    imports: i64,
}

pub(crate) async fn show_catalogue(
    State(app): State<App>,
    Path(tenant): Path<i64>,
) -> Result<Json<CatalogueView>, AppError> {
    let (articles, imports) = app.store.catalogue(tenant).await?;
    Ok(Json(CatalogueView { articles, imports }))
}

/// Replaces a tenant's catalogue, a few articles at a time, each of which has to be priced.
pub(crate) async fn import(
    State(app): State<App>,
    Path(tenant): Path<i64>,
    lease: Option<RequestLease>,
    Json(new): Json<NewCatalogue>,
) -> Result<(StatusCode, Json<Imported>), AppError> {
    let token = app.token(lease.as_ref());
    let import = app.store.begin_import(tenant, token).await?;
    for articles in new.articles.chunks(AT_A_TIME) {
        partners::fetch_prices().await;
        let written = app.store.import_articles(import, articles).await;
        if let Err(StoreError::Stale) = written {
            app.counters.late_writes_refused.add_one();
        }
        written?;
    }
    let imported = Imported {
        import_id: import.id,
        articles: new.articles.len(),
    };
    Ok((StatusCode::CREATED, Json(imported)))
}

const AT_A_TIME: usize = 10;
