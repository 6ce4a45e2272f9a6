//! How long the store may take for what is needed before anything else.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use tokio::time::timeout;

/// Twice as long is less than Prometheus waits (10 s unless told otherwise), which would hear nothing at all of a store that is down.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// What the store answers in time; one that does not is unavailable.
pub(crate) async fn in_time<T>(answer: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    match timeout(ANSWER_MAX, answer).await {
        Ok(answer) => answer,
        Err(late) => Err(StoreError::Unavailable { place: "the store".to_owned(), cause: late.into() }),
    }
}
