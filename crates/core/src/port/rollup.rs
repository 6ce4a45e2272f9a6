//! Store port for rollups.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::rollup::{RollupFilter, Rollups};

/// Numbers of attempts over time.
#[async_trait]
pub trait RollupStore: Send + Sync {
    /// Adds the changes since the last rollup, unless that is less than `every` ago, and deletes old rollups. Any number of processes may
    /// call it at the same time: each change is counted once. Returns whether this call counted.
    async fn roll_up(&self, every: Duration) -> StoreResult<bool>;

    /// Returns the counts of a range that ends now, by the store's clock.
    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups>;
}
