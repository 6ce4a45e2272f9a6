//! Who did what to a store.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Store, StoreResult};
use crate::audit::{Actor, AuditEntry, AuditFilter};

/// Keeps the audit: a row for whatever an actor changes, in the transaction that changes it.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// This store, as that actor uses it: each verb that changes something for people leaves a row of audit. Cheap. Without an
    /// actor nothing is written, but for repairs.
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store>;

    /// What was done, newest first.
    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>>;
}
