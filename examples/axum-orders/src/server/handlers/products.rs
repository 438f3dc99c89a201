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
pub(crate) struct NewProduct {
    stock: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ProductView {
    stock: i64,
    reserved: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reservation {
    product_id: i64,
    /// How many are left.
    left: i64,
}

pub(crate) async fn put_product(
    State(app): State<App>,
    Path(product_id): Path<i64>,
    Json(product): Json<NewProduct>,
) -> Result<Json<ProductView>, AppError> {
    app.store.put_product(product_id, product.stock).await?;
    show_product(State(app), Path(product_id)).await
}

pub(crate) async fn show_product(
    State(app): State<App>,
    Path(product_id): Path<i64>,
) -> Result<Json<ProductView>, AppError> {
    let product = app.store.product(product_id).await?;
    Ok(Json(ProductView {
        stock: product.stock,
        reserved: product.reserved,
    }))
}

/// Reserves one of a product.
///
/// It runs in the request's own future, so the layer drops it when the lease is lost.
pub(crate) async fn reserve(
    State(app): State<App>,
    Path(product_id): Path<i64>,
    lease: Option<RequestLease>,
) -> Result<(StatusCode, Json<Reservation>), AppError> {
    let token = app.token(lease.as_ref());
    let product = app.store.take_product(product_id, token).await?;
    if product.stock == 0 {
        return Err(AppError::SoldOut);
    }
    partners::confirm_delivery().await;
    let left = product.stock - 1;
    let reserved = app.store.reserve(product_id, left, token).await;
    if let Err(StoreError::Stale) = reserved {
        app.counters.late_writes_refused.add_one();
    }
    reserved?;
    Ok((StatusCode::CREATED, Json(Reservation { product_id, left })))
}
