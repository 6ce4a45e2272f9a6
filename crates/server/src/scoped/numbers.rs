//! State changes and numbers over time of a limited token.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::feed::{Activity, Change, FeedPage, FeedPosition};
use milepost_core::port::{FeedStore, RollupStore, StoreResult};
use milepost_core::rollup::{RollupFilter, Rollups};

use super::ScopedStore;

impl ScopedStore {
    async fn owns_change(&self, change: &Change) -> StoreResult<bool> {
        match change {
            Change::Job(change) => Ok(match (&change.queue, &change.kind) {
                (Some(queue), Some(kind)) => self.token.has(queue, kind),
                // The job was deleted.
                _ => false,
            }),
            Change::Batch(change) => self.owns_batch(change.batch).await,
        }
    }
}

#[async_trait]
impl FeedStore for ScopedStore {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        self.inner.feed_end().await
    }

    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        let FeedPage { changes, end, more } = self.inner.feed(after, upto, limit).await?;
        let mut own = Vec::new();
        for (position, change) in changes {
            if self.owns_change(&change).await? {
                own.push((position, change));
            }
        }
        Ok(FeedPage { changes: own, end, more })
    }

    async fn activity(&self, _: &FeedPosition, _: u32) -> StoreResult<Activity> {
        Err(self.whole_store("a count of all state changes"))
    }
}

#[async_trait]
impl RollupStore for ScopedStore {
    async fn roll_up(&self, _: Duration) -> StoreResult<bool> {
        Err(self.whole_store("a rollup"))
    }

    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups> {
        self.inner.rollups(&RollupFilter { scope: self.scope().clone(), ..filter.clone() }).await
    }
}
