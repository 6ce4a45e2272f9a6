//! What stands in Milepost's schema, or on it, without being Milepost's.

use milepost_core::port::StoreResult;

use crate::migrate;
use crate::statement;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Objects that no migration of this binary made and that would go if schema `milepost` were dropped with all
    /// that depends on it, each as `table milepost.orders`: those inside the schema, and those of other schemas
    /// that depend on it, such as views and foreign keys. Changes nothing; the schema need not exist.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn foreign_objects(&self) -> StoreResult<Vec<String>> {
        let objects: Vec<(Option<String>, String)> = sqlx::query_as(statement::FOREIGN_OBJECTS)
            .fetch_all(&self.inner.calm)
            .await
            .map_err(|e| self.fail("foreign_objects", e))?;
        let foreign = objects.into_iter().filter(|(name, _)| !name.as_deref().is_some_and(migrate::makes));
        Ok(foreign.map(|(_, object)| object).collect())
    }
}
