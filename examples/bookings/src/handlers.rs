//! The work of each request, under the lock of its route.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use redlock_core::{AcquireOptions, ResourceKey, ResourceKeys, Wait};
use redlock_cron::chrono::{NaiveDate, Utc};
use redlock_tower::{KeyError, LockKey, Locked, RequestLease};
use serde::Deserialize;
use serde_json::json;

use crate::{
    hotel::{Booking, Receipt, Refused},
    service::{IDEMPOTENCY_KEY, Service},
};

/// The body of a booking.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct NewBooking {
    /// The night, by the day on which it begins.
    pub night: NaiveDate,
    /// The guest's name.
    pub guest: String,
}

/// The body of a payment.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct NewPayment {
    /// The booking that is paid.
    pub booking: u64,
}

/// The body of a move, which names what must be locked.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct Move {
    /// The booking.
    pub booking: u64,
    /// The room that it is in.
    pub from: u32,
    /// Another room.
    pub to: u32,
}

impl LockKey for Move {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        // As the path names them: a booking of one of the rooms waits for the move.
        let rooms = [
            ResourceKey::new("room", self.from)?,
            ResourceKey::new("room", self.to)?,
        ];
        Ok(ResourceKeys::new(rooms)?)
    }
}

pub(crate) async fn book(
    State(service): State<Service>,
    Path(room): Path<u32>,
    lease: RequestLease,
    Json(new): Json<NewBooking>,
) -> Result<(StatusCode, Json<Booking>), Refused> {
    let (place, token) = ((room, new.night), lease.token());
    let booking = service.hotel.book(place, new.guest, Utc::now(), token)?;
    Ok((StatusCode::CREATED, Json(booking)))
}

pub(crate) async fn pay(
    State(service): State<Service>,
    headers: HeaderMap,
    Json(new): Json<NewPayment>,
) -> Result<Json<Receipt>, Refused> {
    // The layer has seen that it is there once, and legible.
    let key = headers.get(&IDEMPOTENCY_KEY);
    let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
    // A request with this key that was answered before is not done again; one that goes on has this lock.
    if let Some(receipt) = service.hotel.receipt(key) {
        let is_the_same = receipt.booking == new.booking;
        return if is_the_same {
            Ok(Json(receipt))
        } else {
            Err(Refused::OtherPayment)
        };
    }
    // Two clients may pay the same booking, each with a key of its own.
    // So the booking is locked too, from the check that it can be paid until it is paid.
    let booking = ResourceKey::new("booking", new.booking).map_err(|_| Refused::Unknown)?;
    let options = AcquireOptions::new().wait(Wait::UpTo(OTHERS_MAY_PAY));
    let guard = service.redlock.acquire_with(booking, options).await;
    let guard = guard.map_err(|_| Refused::TooLate)?;
    service.hotel.expect_unpaid(new.booking)?;
    // The bank takes its time. It has the same key, so it charges once, also if this process dies now.
    tokio::time::sleep(service.bank_takes).await;
    let receipt = service.hotel.pay(key, new.booking);
    // A lease that has ended meanwhile is no failure of the payment.
    drop(guard.release().await);
    receipt.map(Json)
}

/// The time for which a payment waits for another one of the same booking.
const OTHERS_MAY_PAY: Duration = Duration::from_secs(5);

pub(crate) async fn relocate(
    State(service): State<Service>,
    wanted: Locked<Json<Move>>,
) -> Result<Json<Booking>, Refused> {
    let (rooms, token) = ((wanted.from, wanted.to), wanted.lease().token());
    let moved = service.hotel.relocate(wanted.booking, rooms, token);
    moved.map(Json)
}

pub(crate) async fn look(
    State(service): State<Service>,
    Path(booking): Path<u64>,
) -> Result<Json<Booking>, Refused> {
    let booking = service.hotel.booking(booking);
    booking.map(Json).ok_or(Refused::Unknown)
}

pub(crate) async fn ready(State(service): State<Service>) -> StatusCode {
    if service.redlock.is_ready().await {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Taken => (StatusCode::CONFLICT, "the room is taken in that night"),
            Self::Unknown => (StatusCode::NOT_FOUND, "there is no such booking"),
            Self::Paid => (StatusCode::CONFLICT, "it is paid"),
            Self::OtherPayment => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "this key was used for another payment",
            ),
            Self::TooLate => (StatusCode::SERVICE_UNAVAILABLE, "ask again"),
        };
        (status, Json(json!({ "error": why }))).into_response()
    }
}
