//! Read operations of the faulty store, which have no faults.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::feed::{Activity, FeedPage, FeedPosition};
use milepost_core::history::HistoryEntry;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobsFound, LastFailure};
use milepost_core::port::{FeedStore, RollupStore, SearchStore, StoreResult};
use milepost_core::rollup::{RollupFilter, Rollups};
use milepost_core::search::JobFilter;

use super::Faulty;

#[async_trait]
impl FeedStore for Faulty {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        self.pass("feed_end", self.inner.feed_end()).await
    }

    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        self.pass("feed", self.inner.feed(after, upto, limit)).await
    }

    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity> {
        self.pass("activity", self.inner.activity(after, lengths)).await
    }
}

#[async_trait]
impl RollupStore for Faulty {
    async fn roll_up(&self, every: Duration) -> StoreResult<bool> {
        self.pass("roll_up", self.inner.roll_up(every)).await
    }

    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups> {
        self.pass("rollups", self.inner.rollups(filter)).await
    }
}

#[async_trait]
impl SearchStore for Faulty {
    async fn search_jobs(&self, search: &JobFilter) -> StoreResult<JobsFound> {
        self.pass("search_jobs", self.inner.search_jobs(search)).await
    }

    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>> {
        self.pass("last_failures", self.inner.last_failures(jobs)).await
    }

    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>> {
        self.pass("last_changes", self.inner.last_changes(jobs)).await
    }
}
