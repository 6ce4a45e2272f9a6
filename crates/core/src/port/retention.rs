//! Store port for retention periods that operators set.

use async_trait::async_trait;

use super::StoreResult;
use crate::retention::{Retained, RetentionPeriod, RetentionPolicy};

/// Retention periods that operators have stored. They replace those of the configurations of all processes.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Stores a period. [`Retention`](crate::error::StoreError::Retention) if it is invalid.
    async fn put_retention(&self, period: RetentionPeriod) -> StoreResult<()>;

    /// Removes a stored period, so that the configuration applies again. Returns whether there was one.
    async fn remove_retention(&self, of: Retained) -> StoreResult<bool>;

    /// Lists the stored periods.
    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>>;

    /// Returns the policy that applies to a process with this configuration.
    async fn retention(&self, configured: &RetentionPolicy) -> StoreResult<RetentionPolicy> {
        Ok(configured.with(self.stored_retention().await?))
    }
}
