//! Store port for limits.

use std::collections::HashSet;

use async_trait::async_trait;

use super::StoreResult;
use crate::limit::{Limit, LimitView, Source, Target};
use crate::precedence::{Put, Scope, Synced};

/// Limits of kinds and groups. They apply to all processes together.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// Creates a limit, or changes the existing one; only an operator can change an operator's limit. Additional slots
    /// are filled immediately; surplus slots are freed as their jobs end. [`Limit`](crate::error::StoreError::Limit)
    /// when it is invalid.
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put>;

    /// Removes a limit; only an operator can remove an operator's limit. Returns whether one was removed. The group
    /// then has one slot, or the limit of its class.
    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool>;

    /// Lists all limits, kinds first, by name.
    async fn limits(&self) -> StoreResult<Vec<LimitView>>;

    /// Applies the limits of a configuration, and removes those of its scope that it no longer contains. Operators' limits are
    /// not changed. Each change is a separate transaction; after an error the call can be repeated.
    async fn sync_limits(&self, configured: &[Limit], scope: &Scope) -> StoreResult<Synced> {
        for limit in configured {
            limit.check()?;
        }
        let mut synced = Synced::default();
        for limit in configured {
            if self.put_limit(limit, Source::Config).await? == Put::Foreign {
                synced.foreign.push(limit.target.to_string());
            }
        }
        let named: HashSet<&Target> = configured.iter().map(|limit| &limit.target).collect();
        for view in self.limits().await? {
            let target = view.limit.target;
            if view.source == Source::Config
                && scope.has(target.name())
                && !named.contains(&target)
                && self.remove_limit(&target, Source::Config).await?
            {
                synced.removed.push(target.to_string());
            }
        }
        Ok(synced)
    }
}
