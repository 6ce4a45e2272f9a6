//! The audit of a limited token: entries about its own objects.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditEntry, AuditFilter};
use milepost_core::port::{AuditStore, Store, StoreResult};

use super::ScopedStore;

/// The number of entries of any token that one query reads: an entry can be large.
const PAGE: u32 = 100;
/// The maximum number of queries for one page.
const PAGES_MAX: u32 = 100;

impl ScopedStore {
    /// Returns whether an entry is about an own object, or about an action of this token.
    async fn owns_entry(&self, entry: &AuditEntry) -> StoreResult<bool> {
        if entry.who == self.token.who && entry.at >= self.token.created_at {
            return Ok(true);
        }
        let (Some(subject), Some((noun, verb))) = (&entry.subject, entry.what.split_once('.')) else {
            return Ok(false);
        };
        match noun {
            "bulk" if matches!(verb, "put" | "remove") => self.owns_bulk_named(subject).await,
            "job" | "bulk" => match subject.parse() {
                Ok(job) => self.owns_job(job).await,
                Err(_) => Ok(false),
            },
            "batch" => match subject.parse() {
                Ok(batch) => self.owns_batch(batch).await,
                Err(_) => Ok(false),
            },
            "queue" => Ok(self.scope().owns_queue(subject)),
            "limit" => Ok(subject.strip_prefix("kind ").is_some_and(|kind| self.scope().owns_kind(kind))),
            "schedule" => match self.inner.schedule(subject).await? {
                Some(view) => self.owns_schedule(&view.schedule).await,
                None => Ok(false),
            },
            "dag" => self.owns_dag(subject).await,
            _ => Ok(false),
        }
    }
}

#[async_trait]
impl AuditStore for ScopedStore {
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.acting_as(actor), ..self.clone() })
    }

    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>> {
        let wanted = filter.limit as usize;
        let mut filter = AuditFilter { limit: PAGE.min(filter.limit), ..filter.clone() };
        let mut own = Vec::new();
        for _ in 0..PAGES_MAX {
            let found = self.inner.audit_log(&filter).await?;
            let is_last = found.len() < filter.limit as usize;
            filter.before = found.last().map(|entry| entry.pos);
            for entry in found {
                if own.len() < wanted && self.owns_entry(&entry).await? {
                    own.push(entry);
                }
            }
            if is_last || own.len() >= wanted {
                break;
            }
        }
        Ok(own)
    }
}
