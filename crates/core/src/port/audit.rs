//! Store port for the audit.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Store, StoreResult};
use crate::audit::{Actor, AuditEntry, AuditFilter};

/// The audit: one row for every change by an actor, in the transaction of the change.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Returns this store on behalf of an actor: each operator's verb that changes something writes an audit row. Cheap.
    /// Without an actor no rows are written, except for repairs.
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store>;

    /// Lists audit entries, newest first.
    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>>;
}
