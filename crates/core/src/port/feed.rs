//! Store port for the live feed.

use async_trait::async_trait;

use super::StoreResult;
use crate::feed::{Activity, FeedPage, FeedPosition};

/// The histories of jobs and batches as one stream.
#[async_trait]
pub trait FeedStore: Send + Sync {
    /// Returns the position after the last change.
    async fn feed_end(&self) -> StoreResult<FeedPosition>;

    /// Returns at most `limit` changes after a position. `upto`: a position of this store at which to stop, which must have been the end
    /// at some time; `None`: the current end. When `upto` is not after `after`, the page is empty and ends where it began.
    ///
    /// # Errors
    /// [`Feed`](crate::error::StoreError::Feed): the position is not from this store, or it is too far behind `upto`.
    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage>;

    /// Counts the starts and ends of attempts after a position. `lengths`: the approximate maximum number of sampled durations
    /// per second and verb.
    ///
    /// # Errors
    /// [`Feed`](crate::error::StoreError::Feed): the position is not from this store.
    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity>;
}
