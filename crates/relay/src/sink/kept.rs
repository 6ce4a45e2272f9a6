//! A connection that is made when it is needed, and anew after it broke.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::SinkDown;

/// What can be asked of a connection without talking to the broker.
pub(super) trait Connection: Send + Sync {
    /// Whether it is of use, as far as is known.
    fn is_usable(&self) -> bool;
}

/// The one connection of a sink.
pub(super) struct Kept<C>(Mutex<Option<Arc<C>>>);

impl<C: Connection> Kept<C> {
    pub(super) fn none() -> Self {
        Self(Mutex::new(None))
    }

    /// The connection there is, or a new one. Who comes while it is being made waits for it.
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

    /// Forgets a connection that did not keep its word, unless there is another one by now.
    pub(super) async fn forget(&self, broken: &Arc<C>) {
        self.0.lock().await.take_if(|connection| Arc::ptr_eq(connection, broken));
    }
}

impl<C> fmt::Debug for Kept<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept(…)")
    }
}
