//! The store as a limited token sees it: only jobs of its queues and kinds, and what consists of them.
//!
//! This is the only place where the limits of tokens are enforced. Handlers of requests with a limited token get a [`ScopedStore`] instead of
//! the store, and every method of a store is written here: it covers only own objects, or refuses the call. Objects of others are answered as
//! if they did not exist.

mod audit;
mod batches;
mod bulks;
mod jobs;
mod known;
mod numbers;
mod ownership;
mod refused;
mod schedules;
mod sessions;
mod workers;

use std::sync::Arc;

use jiff::Timestamp;
use milepost_core::bulk::dry_run;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::token::{TokenScope, TokenView};

use self::known::Known;

/// A token that is limited to queues and kinds.
#[derive(Debug)]
pub(crate) struct LimitedToken {
    /// The public part of the token.
    pub(crate) prefix: String,
    /// The name in the audit log.
    who: String,
    /// When it was created: actions of earlier tokens with this name are not its own.
    created_at: Timestamp,
    /// The queues and kinds.
    pub(crate) scope: TokenScope,
}

impl LimitedToken {
    /// Returns the limits of a token; `None` if it has none.
    pub(crate) fn of(token: &TokenView, who: &str) -> Option<Self> {
        let scope = token.scope.clone()?;
        let prefix = token.prefix.clone();
        Some(Self { prefix, who: who.to_owned(), created_at: token.created_at, scope })
    }

    /// Returns whether jobs of this queue and kind are its own.
    fn has(&self, queue: &str, kind: &str) -> bool {
        self.scope.has_queue(queue) && self.has_kind(kind)
    }

    /// Returns whether jobs of this kind are its own, if their queue is, too. A dry run belongs to the kind of its bulk job.
    fn has_kind(&self, kind: &str) -> bool {
        self.scope.has_kind(dry_run::bulk_of(kind).unwrap_or(kind))
    }

    /// Refuses a call. `what`: the reason, such as `the queue "billing" is not its own`.
    pub(crate) fn refusal(&self, what: impl Into<String>) -> StoreError {
        StoreError::OutsideScope(self.scope.refusal(what))
    }

    /// Refuses jobs that are not of its queues and kinds.
    pub(crate) fn check_jobs<'n>(
        &self,
        jobs: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> Result<(), StoreError> {
        for (queue, kind) in jobs {
            self.check_queue(queue)?;
            self.check_kind(kind)?;
        }
        Ok(())
    }

    fn check_queue(&self, queue: &str) -> Result<(), StoreError> {
        if self.scope.has_queue(queue) {
            return Ok(());
        }
        Err(self.refusal(format!("this is for queue {queue:?}")))
    }

    fn check_kind(&self, kind: &str) -> Result<(), StoreError> {
        if self.has_kind(kind) {
            return Ok(());
        }
        Err(self.refusal(format!("this is for kind {kind:?}")))
    }
}

/// A store that contains only what a limited token may see.
#[derive(Clone)]
pub(crate) struct ScopedStore {
    inner: Arc<dyn Store>,
    token: Arc<LimitedToken>,
    known: Arc<Known>,
}

impl ScopedStore {
    pub(crate) fn new(inner: Arc<dyn Store>, token: Arc<LimitedToken>) -> Self {
        Self { inner, token, known: Arc::default() }
    }

    /// The refusal of a call that covers the whole store.
    fn whole_store(&self, what: &str) -> StoreError {
        self.token.refusal(format!("{what} covers the whole store"))
    }

    fn scope(&self) -> &TokenScope {
        &self.token.scope
    }
}
