//! The feed of a store with faults, which has none of its own.

use async_trait::async_trait;
use milepost_core::feed::{FeedPage, FeedPosition};
use milepost_core::port::{FeedStore, StoreResult};

use super::Faulty;

#[async_trait]
impl FeedStore for Faulty {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        self.inner.feed_end().await
    }

    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        self.inner.feed(after, upto, limit).await
    }
}
