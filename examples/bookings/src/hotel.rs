//! The bookings, in memory: they stand for a database.
//!
//! A change of a room, and the end of a day, come with a fencing token; the hotel refuses a token that is older than the
//! newest that it has seen.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redlock_core::{Fence, FencingToken};
use redlock_cron::chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// The hotel's data, the same for all replicas.
#[derive(Clone, Default)]
pub struct Hotel(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    bookings: BTreeMap<u64, Booking>,
    /// How many there were.
    booked: u64,
    rooms: HashMap<u32, Fence>,
    /// By the key that the client has chosen.
    receipts: HashMap<String, Receipt>,
    charges: u64,
    days: Fence,
    closed: BTreeMap<NaiveDate, u64>,
}

/// A room for a night.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Booking {
    /// Its number.
    pub id: u64,
    /// The room.
    pub room: u32,
    /// The night, by the day on which it begins.
    pub night: NaiveDate,
    /// The guest's name.
    pub guest: String,
    /// True once it is paid.
    pub paid: bool,
    /// When it was made.
    pub made: DateTime<Utc>,
}

/// The answer to a payment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The booking that was paid.
    pub booking: u64,
    /// Which charge of the hotel it is.
    pub charge: u64,
}

/// A change that is not made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// Another booking has the room for that night.
    Taken,
    /// There is no such booking.
    Unknown,
    /// It is paid.
    Paid,
    /// The key of the payment was used for another one.
    OtherPayment,
    /// A later holder of the lock has been here.
    TooLate,
}

/// The time in which a booking must be paid.
pub const PAY_WITHIN: Duration = Duration::from_secs(15 * 60);

impl Hotel {
    /// Books a room that is free in that night.
    pub fn book(
        &self,
        (room, night): (u32, NaiveDate),
        guest: String,
        made: DateTime<Utc>,
        token: FencingToken,
    ) -> Result<Booking, Refused> {
        let mut tables = self.tables();
        tables.enter(room, token)?;
        tables.expect_free(room, night)?;
        // No number is given twice, also if its booking has expired.
        tables.booked += 1;
        let id = tables.booked;
        let booking = Booking {
            id,
            room,
            night,
            guest,
            paid: false,
            made,
        };
        tables.bookings.insert(id, booking.clone());
        Ok(booking)
    }

    /// Moves a booking to another room, if it is in the one that it is to be moved from.
    pub fn relocate(
        &self,
        booking: u64,
        (from, to): (u32, u32),
        token: FencingToken,
    ) -> Result<Booking, Refused> {
        let mut tables = self.tables();
        for room in BTreeSet::from([from, to]) {
            tables.enter(room, token)?;
        }
        let found = tables.bookings.get(&booking);
        let found = found.filter(|booking| booking.room == from);
        let night = found.ok_or(Refused::Unknown)?.night;
        tables.expect_free(to, night)?;
        let booking = tables.bookings.get_mut(&booking).ok_or(Refused::Unknown)?;
        booking.room = to;
        Ok(booking.clone())
    }

    /// Returns what was answered to a payment with this key.
    pub fn receipt(&self, key: &str) -> Option<Receipt> {
        self.tables().receipts.get(key).cloned()
    }

    /// Refuses a booking that there is not, or that is paid.
    pub fn expect_unpaid(&self, booking: u64) -> Result<(), Refused> {
        match self.tables().bookings.get(&booking) {
            None => Err(Refused::Unknown),
            Some(booking) if booking.paid => Err(Refused::Paid),
            Some(_) => Ok(()),
        }
    }

    /// Notes that a booking was paid, and what to answer to a client that asks again with the same key.
    pub fn pay(&self, key: &str, booking: u64) -> Result<Receipt, Refused> {
        let mut tables = self.tables();
        let found = tables.bookings.get_mut(&booking).ok_or(Refused::Unknown)?;
        if std::mem::replace(&mut found.paid, true) {
            return Err(Refused::Paid);
        }
        tables.charges += 1;
        let charge = tables.charges;
        let receipt = Receipt { booking, charge };
        tables.receipts.insert(key.to_owned(), receipt.clone());
        Ok(receipt)
    }

    /// Returns a booking.
    pub fn booking(&self, booking: u64) -> Option<Booking> {
        self.tables().bookings.get(&booking).cloned()
    }

    /// Returns how often a card was charged.
    pub fn charges(&self) -> u64 {
        self.tables().charges
    }

    /// Returns the bookings that were not paid in time.
    pub fn unpaid_too_long(&self, now: DateTime<Utc>) -> Vec<u64> {
        let is_fresh = |made: DateTime<Utc>| (now - made).to_std().unwrap_or_default() < PAY_WITHIN;
        let tables = self.tables();
        let stale = tables
            .bookings
            .values()
            .filter(|booking| !booking.paid && !is_fresh(booking.made));
        stale.map(|booking| booking.id).collect()
    }

    /// Gives up a booking, unless it was paid meanwhile; returns whether it was there.
    pub fn expire(&self, booking: u64) -> bool {
        let mut tables = self.tables();
        let is_unpaid = tables
            .bookings
            .get(&booking)
            .is_some_and(|found| !found.paid);
        is_unpaid && tables.bookings.remove(&booking).is_some()
    }

    /// Begins to close days: from now on, an older run closes none.
    pub fn begin_closing(&self, token: FencingToken) -> Result<(), Refused> {
        let read = self.tables().days.read(token);
        read.map_err(|_| Refused::TooLate)
    }

    /// Closes a day, unless it is closed: so many paid nights begin on it.
    pub fn close_day(&self, day: NaiveDate, token: FencingToken) -> Result<(), Refused> {
        let mut tables = self.tables();
        tables.days.write(token).map_err(|_| Refused::TooLate)?;
        let bookings = tables.bookings.values();
        let nights = bookings.filter(|booking| booking.paid && booking.night == day);
        let nights = nights.count() as u64;
        tables.closed.entry(day).or_insert(nights);
        Ok(())
    }

    /// Returns the days that are closed, with how many paid nights begin on each.
    pub fn closed_days(&self) -> BTreeMap<NaiveDate, u64> {
        self.tables().closed.clone()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // No panic comes between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// Refuses a holder of the room's lock that comes after a later one.
    fn enter(&mut self, room: u32, token: FencingToken) -> Result<(), Refused> {
        let fence = self.rooms.entry(room).or_default();
        fence.write(token).map_err(|_| Refused::TooLate)
    }

    fn expect_free(&self, room: u32, night: NaiveDate) -> Result<(), Refused> {
        let mut bookings = self.bookings.values();
        let is_taken = bookings.any(|booking| (booking.room, booking.night) == (room, night));
        if is_taken {
            Err(Refused::Taken)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Hotel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hotel").finish_non_exhaustive()
    }
}
