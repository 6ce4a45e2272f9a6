//! What holds a run so that others get their turn.

use async_trait::async_trait;

/// Something that can hold bulk jobs: a replica that lags, locks that are waited for, a probe of the user's.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Why no chunk may start now, in words that name it; `None`: one may. What cannot be found out holds too.
    async fn holds(&self) -> Option<String>;
}
