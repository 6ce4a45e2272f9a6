//! Functions that wait for states instead of sleeping.

use std::time::Duration;

/// How long tests wait for an expected state. It is not a speed requirement: a busy machine may be slow.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Calls `ask` until it returns true. Panics with `what` after [`LIMIT`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    until_within(LIMIT, what, &mut ask).await;
}

/// Calls `ask` until it returns true. Panics with `what` after `limit`.
pub async fn until_within<F: Future<Output = bool>>(limit: Duration, what: &str, mut ask: impl FnMut() -> F) {
    let asking = async {
        while !ask().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let asked = tokio::time::timeout(limit, asking).await;
    assert!(asked.is_ok(), "timed out after {limit:?} waiting until: {what}");
}
