use axum::{
    Json,
    extract::{Path, State},
};
use redlock_core::FencingToken;
use redlock_tower::RequestLease;
use serde::{Deserialize, Serialize};

use crate::server::{error::AppError, partners, state::App};

#[derive(Debug, Deserialize)]
pub(crate) struct NewOrder {
    /// What it costs, in cents.
    amount: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct OrderView {
    amount: i64,
    paid: bool,
    payments: i64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Payment {
    card: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Receipt {
    order_id: i64,
    amount: i64,
}

pub(crate) async fn put_order(
    State(app): State<App>,
    Path(order_id): Path<i64>,
    Json(order): Json<NewOrder>,
) -> Result<Json<OrderView>, AppError> {
    app.store.put_order(order_id, order.amount).await?;
    show_order(State(app), Path(order_id)).await
}

pub(crate) async fn show_order(
    State(app): State<App>,
    Path(order_id): Path<i64>,
) -> Result<Json<OrderView>, AppError> {
    let order = app.store.order(order_id).await?;
    Ok(Json(OrderView {
        amount: order.amount,
        paid: order.paid,
        payments: order.payments,
    }))
}

/// Pays an order, in a task of its own: half a payment is worse than none, and a handler is dropped when its
/// client hangs up or its lease is lost.
///
/// The task takes the lock with it, so that a client which hangs up and asks again waits for it.
/// The price of a task is that the layer cannot drop it.
/// A write that comes too late is refused by the database instead.
pub(crate) async fn pay(
    State(app): State<App>,
    Path(order_id): Path<i64>,
    lease: Option<RequestLease>,
    Json(payment): Json<Payment>,
) -> Result<Json<Receipt>, AppError> {
    let payments = app.payments.clone();
    let token = app.token(lease.as_ref());
    let lock = lease.map(RequestLease::into_owned).transpose();
    let lock = lock.map_err(|_| AppError::Internal)?;
    let paid = payments.spawn(async move {
        let paid = carry_through(&app, order_id, token, payment).await;
        drop(lock);
        if let Err(AppError::Stale) = paid {
            app.counters.late_writes_refused.add_one();
            tracing::warn!("a payment of order {order_id} came too late and was refused");
        }
        paid
    });
    paid.await.unwrap_or_else(|panic| {
        tracing::error!(%panic, "a payment failed");
        Err(AppError::Internal)
    })
}

async fn carry_through(
    app: &App,
    order_id: i64,
    token: Option<FencingToken>,
    payment: Payment,
) -> Result<Json<Receipt>, AppError> {
    let order = app.store.take_order(order_id, token).await?;
    if order.paid {
        return Err(AppError::AlreadyPaid);
    }
    app.counters.banks_asked.add_one();
    partners::authorise(order_id, &payment.card).await?;
    app.store.pay_order(order_id, order.amount, token).await?;
    Ok(Json(Receipt {
        order_id,
        amount: order.amount,
    }))
}
