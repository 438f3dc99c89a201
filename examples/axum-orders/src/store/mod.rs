//! The database that all replicas share: one SQLite file, written by several processes.
//!
//! It is used as services use databases: one statement reads, the program thinks, another one writes.
//! That is right only if no other request works on the same row meanwhile, which the lock ensures.
//!
//! # The fence
//!
//! A lock cannot stop a process that is paused after its last look at the lease, so every row that is worked on
//! under a lock has a column `fence`, the greatest token that was seen.
//!
//! - Reading what a decision rests on *raises* it: `UPDATE … SET fence = $token WHERE … AND fence <= $token`.
//! - Writing asks for it: `UPDATE … WHERE … AND fence = $token`, in one transaction with the rest of the work.
//!
//! So once a newer holder has read, the holder of an older lease cannot write any more.
//! To compare at the write alone is not enough: the older holder could write between the newer one's read and write.

mod catalogue;
mod orders;
mod products;
#[cfg(test)]
mod tests;

use std::{fmt, path::Path, time::Duration};

use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// A handle to the database; clones share one pool of connections.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pool: SqlitePool,
}

impl Store {
    /// Opens the file, and makes it and its tables if they are not there.
    pub(crate) async fn open(file: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            // Readers and the one writer do not wait for each other.
            .journal_mode(SqliteJournalMode::Wal)
            // In this mode a power cut may cost the last commits, which an example can live with.
            .synchronous(SqliteSynchronous::Normal)
            // How long a write waits for that of another process.
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options)
            .await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool })
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Why nothing was read or written.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// There is no such row.
    NotFound,
    /// A newer lease has read or written since: this one is over.
    Stale,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such thing"),
            Self::Stale => f.write_str("a newer lease was seen: this one is over"),
            Self::Database(error) => write!(f, "database: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Takes the right to write at once: SQLite refuses to give it to a transaction that has read before others
/// wrote.
const BEGIN: &str = "BEGIN IMMEDIATE";

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS orders (
    id     INTEGER PRIMARY KEY,
    amount INTEGER NOT NULL,
    paid   INTEGER NOT NULL DEFAULT FALSE,
    fence  INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS payments (
    id       INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    amount   INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS payments_by_order ON payments (order_id);
CREATE TABLE IF NOT EXISTS products (
    id    INTEGER PRIMARY KEY,
    stock INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS reservations (
    id         INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (id)
);
CREATE INDEX IF NOT EXISTS reservations_by_product ON reservations (product_id);
CREATE TABLE IF NOT EXISTS tenants (
    id    INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS imports (
    id        INTEGER PRIMARY KEY,
    tenant_id INTEGER NOT NULL REFERENCES tenants (id)
);
CREATE TABLE IF NOT EXISTS catalogue (
    tenant_id INTEGER NOT NULL REFERENCES tenants (id),
    import_id INTEGER NOT NULL REFERENCES imports (id),
    article   TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS catalogue_by_tenant ON catalogue (tenant_id);
";
