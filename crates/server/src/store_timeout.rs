//! The time limit for the store queries that every request needs first.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use tokio::time::timeout;

/// Twice this limit is less than the scrape timeout of Prometheus (10 s by default), so that a scrape gets a response even when
/// the store is down.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Returns the result of the store, or [`StoreError::Unavailable`] if it takes longer than the limit.
pub(crate) async fn in_time<T>(answer: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    match timeout(ANSWER_MAX, answer).await {
        Ok(answer) => answer,
        Err(late) => Err(StoreError::Unavailable { place: "the store".to_owned(), cause: late.into() }),
    }
}
