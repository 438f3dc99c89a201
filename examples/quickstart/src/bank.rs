//! The store that all replicas share: its balances are right only if one request at a time works on an account.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use stage::Story;

/// How many customers there are; few, so that their accounts are hot.
pub(crate) const CUSTOMERS: usize = 4;
const OPENING_BALANCE: i64 = 1_000;

/// The accounts of each customer, and a count of the requests that work on them at the same time.
#[derive(Debug)]
pub(crate) struct Bank {
    customers: [Customer; CUSTOMERS],
    transfers: AtomicUsize,
    overlaps: AtomicUsize,
}

#[derive(Debug)]
struct Customer {
    accounts: Mutex<Accounts>,
    inside: AtomicUsize,
}

/// A customer's money.
#[derive(Clone, Copy, Debug)]
struct Accounts {
    current: i64,
    savings: i64,
}

/// What the books say in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Books {
    /// How often a request touched accounts that another was still working on.
    pub(crate) overlaps: usize,
    /// Transfers that were confirmed to a client and are not in the books.
    pub(crate) lost: usize,
}

impl Bank {
    pub(crate) fn open() -> Self {
        let open = |_| Customer {
            accounts: Mutex::new(Accounts {
                current: OPENING_BALANCE,
                savings: 0,
            }),
            inside: AtomicUsize::new(0),
        };
        Self {
            customers: std::array::from_fn(open),
            transfers: AtomicUsize::new(0),
            overlaps: AtomicUsize::new(0),
        }
    }

    /// Moves one coin from a customer's current account to the savings account.
    ///
    /// It reads, thinks and writes, as a service does that computes outside of its database.
    /// `None` if there is no such customer.
    pub(crate) async fn transfer(&self, customer: usize) -> Option<i64> {
        let customer = self.customers.get(customer)?;
        if customer.inside.fetch_add(1, Ordering::SeqCst) > 0 {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let read = *customer.accounts();
        tokio::time::sleep(THINKING).await;
        let written = Accounts {
            current: read.current - 1,
            savings: read.savings + 1,
        };
        *customer.accounts() = written;
        customer.inside.fetch_sub(1, Ordering::SeqCst);
        self.transfers.fetch_add(1, Ordering::SeqCst);
        Some(written.savings)
    }

    /// Compares what was confirmed with what is in the accounts.
    pub(crate) fn check(&self, story: &Story) -> Books {
        let accounts = self.customers.iter().map(|customer| *customer.accounts());
        let savings: i64 = accounts.map(|accounts| accounts.savings).sum();
        let transfers = self.transfers.load(Ordering::SeqCst);
        let lost = transfers - usize::try_from(savings).unwrap_or(0);
        let overlaps = self.overlaps.load(Ordering::SeqCst);
        story.tell(format_args!(
            "the books: {transfers} transfers made, {savings} coins saved, {lost} lost, \
             {overlaps} overlaps"
        ));
        Books { overlaps, lost }
    }
}

impl Customer {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        // Held for one read or one write only; nothing panics in between.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Long enough for another request to come in between.
const THINKING: Duration = Duration::from_millis(3);
