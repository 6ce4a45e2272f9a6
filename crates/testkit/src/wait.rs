//! Waiting for states instead of sleeping.

use std::time::{Duration, Instant};

/// How long tests wait for what must come. It says nothing about speed: a busy machine may take its time.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Asks until the answer is yes; panics with `what` when it is still no after [`LIMIT`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    until_within(LIMIT, what, &mut ask).await;
}

/// Asks until the answer is yes; panics with `what` when it is still no after `limit`.
pub async fn until_within<F: Future<Output = bool>>(limit: Duration, what: &str, mut ask: impl FnMut() -> F) {
    let began = Instant::now();
    while !ask().await {
        assert!(began.elapsed() < limit, "waited {limit:?} in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
