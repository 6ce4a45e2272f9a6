//! Lazily opened connection, which is replaced after it breaks.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::SinkDown;

/// A connection whose state can be checked without a request to the broker.
pub(super) trait Connection: Send + Sync {
    /// Returns whether the connection can be used, as far as is known locally.
    fn is_usable(&self) -> bool;
}

/// The connection of a sink.
pub(super) struct Reconnecting<C>(Mutex<Option<Arc<C>>>);

impl<C: Connection> Reconnecting<C> {
    pub(super) fn none() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the existing connection or opens one. Concurrent callers wait until it is open.
    pub(super) async fn get(
        &self,
        connect: impl Future<Output = Result<C, SinkDown>> + Send,
    ) -> Result<Arc<C>, SinkDown> {
        let mut kept = self.0.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| connection.is_usable()) {
            return Ok(connection.clone());
        }
        *kept = None;
        let connection = Arc::new(connect.await?);
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// Discards a broken connection, unless it has already been replaced.
    pub(super) async fn forget(&self, broken: &Arc<C>) {
        self.0.lock().await.take_if(|connection| Arc::ptr_eq(connection, broken));
    }
}

impl<C> fmt::Debug for Reconnecting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reconnecting(…)")
    }
}
