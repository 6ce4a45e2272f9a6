//! The port of those who watch.

use async_trait::async_trait;

use super::StoreResult;
use crate::feed::{Activity, FeedPage, FeedPosition};

/// The histories of jobs and batches as one stream.
#[async_trait]
pub trait FeedStore: Send + Sync {
    /// The position behind all that has happened.
    async fn feed_end(&self) -> StoreResult<FeedPosition>;

    /// What has happened after a position, at most so many changes. `upto`: another position of this store at which to
    /// stop, one that was the end once; `None`: now. When `upto` does not lie behind `after`, the page is empty and ends where it began.
    ///
    /// # Errors
    /// [`Feed`](crate::error::StoreError::Feed): the position is none of this store, or it is too far behind `upto`.
    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage>;

    /// What was begun and ended after a position, counted, with about so many lengths of time of each second and verb at most.
    ///
    /// # Errors
    /// [`Feed`](crate::error::StoreError::Feed): the position is none of this store.
    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity>;
}
