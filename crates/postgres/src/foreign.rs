//! Objects in Milepost's schema, or depending on it, that are not part of Milepost.

use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;

use crate::migrate;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Returns the objects that no migration of this binary made and that `DROP SCHEMA milepost CASCADE` would drop, each as
    /// `table milepost.orders`: those inside the schema, and those of other schemas that depend on it, such as views and
    /// foreign keys. Changes nothing; the schema need not exist.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn foreign_objects(&self) -> StoreResult<Vec<String>> {
        let fail = |e| self.fail("foreign_objects", e);
        let rows = self.inner.calm.rows(sqlx::query(sql!("foreign_objects"))).await.map_err(fail)?;
        let mut foreign = Vec::new();
        for row in &rows {
            let name: Option<&str> = row.try_get(0).map_err(fail)?;
            if !name.is_some_and(migrate::makes) {
                foreign.push(row.try_get(1).map_err(fail)?);
            }
        }
        Ok(foreign)
    }
}
