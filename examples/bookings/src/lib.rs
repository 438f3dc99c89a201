//! A hotel's bookings, on as many replicas as one likes.
//!
//! | request | locks |
//! |---|---|
//! | `POST /rooms/{room}/bookings` | the room, which the path names |
//! | `POST /payments` | the payment, which the header `Idempotency-Key` names, and then the booking |
//! | `POST /moves` | both rooms, which the body names |
//! | `GET /bookings/{booking}` | nothing |
//! | `GET /ready`, `GET /alive` | nothing; for the balancer and the supervisor |
//!
//! Two jobs run on one replica each: unpaid bookings expire, and each night the day before is closed.

pub mod app;
pub mod handlers;
pub mod hotel;
pub mod jobs;
pub mod serve;
pub mod service;
