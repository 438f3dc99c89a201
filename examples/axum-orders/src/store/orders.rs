use redlock_core::FencingToken;

use super::{BEGIN, Store, StoreError};

/// An order, and what was paid for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Order {
    /// What it costs, in cents.
    pub(crate) amount: i64,
    pub(crate) paid: bool,
    /// How often money was taken for it, which should be once.
    pub(crate) payments: i64,
}

impl Store {
    /// Makes an order; one that is there already stays as it is.
    pub(crate) async fn put_order(&self, id: i64, amount: i64) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO orders (id, amount) VALUES (?, ?) ON CONFLICT DO NOTHING")
            .bind(id)
            .bind(amount)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn order(&self, id: i64) -> Result<Order, StoreError> {
        let row: Option<(i64, bool, i64)> = sqlx::query_as(
            "SELECT amount, paid, (SELECT count(*) FROM payments WHERE order_id = orders.id)
             FROM orders WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(&self.pool)
        .await?;
        let (amount, paid, payments) = row.ok_or(StoreError::NotFound)?;
        Ok(Order {
            amount,
            paid,
            payments,
        })
    }

    /// Reads an order to work on it: from now on, holders of older leases cannot.
    ///
    /// Without a token it only reads.
    pub(crate) async fn take_order(
        &self,
        id: i64,
        token: Option<FencingToken>,
    ) -> Result<Order, StoreError> {
        if let Some(token) = token {
            let raised = sqlx::query("UPDATE orders SET fence = ?2 WHERE id = ?1 AND fence <= ?2")
                .bind(id)
                .bind(i64::from(token))
                .execute(&self.pool)
                .await?;
            if raised.rows_affected() == 0 {
                // There is no such order, or it is another's.
                return self.order(id).await.and(Err(StoreError::Stale));
            }
        }
        self.order(id).await
    }

    /// Writes that an order was paid.
    pub(crate) async fn pay_order(
        &self,
        id: i64,
        amount: i64,
        token: Option<FencingToken>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin_with(BEGIN).await?;
        let paid = sqlx::query(
            "UPDATE orders SET paid = TRUE WHERE id = ?1 AND (?2 IS NULL OR fence = ?2)",
        )
        .bind(id)
        .bind(token.map(i64::from))
        .execute(&mut *transaction)
        .await?;
        if paid.rows_affected() == 0 {
            return Err(StoreError::Stale);
        }
        sqlx::query("INSERT INTO payments (order_id, amount) VALUES (?, ?)")
            .bind(id)
            .bind(amount)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}
