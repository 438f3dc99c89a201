use redlock_core::FencingToken;
use sqlx::{Sqlite, Transaction};

use super::{BEGIN, Store, StoreError};

/// An import that has begun: it replaces all that the tenant's catalogue had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Import {
    pub(crate) id: i64,
    tenant: i64,
    /// It writes many times under one lease, and each time the fence must still be its own.
    token: Option<FencingToken>,
}

impl Store {
    /// Empties a tenant's catalogue before an import; from now on, holders of older leases cannot write to it.
    pub(crate) async fn begin_import(
        &self,
        tenant: i64,
        token: Option<FencingToken>,
    ) -> Result<Import, StoreError> {
        let mut transaction = self.pool.begin_with(BEGIN).await?;
        sqlx::query("INSERT INTO tenants (id) VALUES (?) ON CONFLICT DO NOTHING")
            .bind(tenant)
            .execute(&mut *transaction)
            .await?;
        let raised = sqlx::query(
            "UPDATE tenants SET fence = coalesce(?2, fence)
             WHERE id = ?1 AND (?2 IS NULL OR fence <= ?2)",
        )
        .bind(tenant)
        .bind(token.map(i64::from))
        .execute(&mut *transaction)
        .await?;
        if raised.rows_affected() == 0 {
            return Err(StoreError::Stale);
        }
        sqlx::query("DELETE FROM catalogue WHERE tenant_id = ?")
            .bind(tenant)
            .execute(&mut *transaction)
            .await?;
        let import = sqlx::query("INSERT INTO imports (tenant_id) VALUES (?)")
            .bind(tenant)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Import {
            id: import.last_insert_rowid(),
            tenant,
            token,
        })
    }

    /// Writes some more articles of an import.
    pub(crate) async fn import_articles(
        &self,
        import: Import,
        articles: &[String],
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin_with(BEGIN).await?;
        import.check(&mut transaction).await?;
        for article in articles {
            sqlx::query("INSERT INTO catalogue (tenant_id, import_id, article) VALUES (?, ?, ?)")
                .bind(import.tenant)
                .bind(import.id)
                .bind(article)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// How many articles a tenant has, and from how many imports, which should be one.
    pub(crate) async fn catalogue(&self, tenant: i64) -> Result<(i64, i64), StoreError> {
        let counts = sqlx::query_as(
            "SELECT count(*), count(DISTINCT import_id) FROM catalogue WHERE tenant_id = ?",
        );
        Ok(counts.bind(tenant).fetch_one(&self.pool).await?)
    }
}

impl Import {
    /// Whether no newer lease was seen.
    async fn check(&self, transaction: &mut Transaction<'_, Sqlite>) -> Result<(), StoreError> {
        let Some(token) = self.token else {
            return Ok(());
        };
        let fence: i64 = sqlx::query_scalar("SELECT fence FROM tenants WHERE id = ?")
            .bind(self.tenant)
            .fetch_one(&mut **transaction)
            .await?;
        if fence == i64::from(token) {
            Ok(())
        } else {
            Err(StoreError::Stale)
        }
    }
}
