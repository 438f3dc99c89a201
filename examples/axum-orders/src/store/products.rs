use redlock_core::FencingToken;

use super::{BEGIN, Store, StoreError};

/// A product, with the number that is left and the number that is promised to customers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Product {
    /// How many are left.
    pub(crate) stock: i64,
    /// How many customers were promised one.
    pub(crate) reserved: i64,
}

impl Store {
    /// Makes a product; one that is there already stays as it is.
    pub(crate) async fn put_product(&self, id: i64, stock: i64) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO products (id, stock) VALUES (?, ?) ON CONFLICT DO NOTHING")
            .bind(id)
            .bind(stock)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn product(&self, id: i64) -> Result<Product, StoreError> {
        let row: Option<(i64, i64)> = sqlx::query_as(
            "SELECT stock, (SELECT count(*) FROM reservations WHERE product_id = products.id)
             FROM products WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(&self.pool)
        .await?;
        let (stock, reserved) = row.ok_or(StoreError::NotFound)?;
        Ok(Product { stock, reserved })
    }

    /// Reads a product to work on it: from now on, holders of older leases cannot.
    ///
    /// Without a token it only reads.
    pub(crate) async fn take_product(
        &self,
        id: i64,
        token: Option<FencingToken>,
    ) -> Result<Product, StoreError> {
        if let Some(token) = token {
            let raised =
                sqlx::query("UPDATE products SET fence = ?2 WHERE id = ?1 AND fence <= ?2")
                    .bind(id)
                    .bind(i64::from(token))
                    .execute(&self.pool)
                    .await?;
            if raised.rows_affected() == 0 {
                return self.product(id).await.and(Err(StoreError::Stale));
            }
        }
        self.product(id).await
    }

    /// Writes a reservation, and what is left after it.
    pub(crate) async fn reserve(
        &self,
        id: i64,
        left: i64,
        token: Option<FencingToken>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin_with(BEGIN).await?;
        let changed = sqlx::query(
            "UPDATE products SET stock = ?3 WHERE id = ?1 AND (?2 IS NULL OR fence = ?2)",
        )
        .bind(id)
        .bind(token.map(i64::from))
        .bind(left)
        .execute(&mut *transaction)
        .await?;
        if changed.rows_affected() == 0 {
            return Err(StoreError::Stale);
        }
        sqlx::query("INSERT INTO reservations (product_id) VALUES (?)")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}
