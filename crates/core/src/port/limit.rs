//! What keeps limits.

use std::collections::HashSet;

use async_trait::async_trait;

use super::StoreResult;
use crate::limit::{Limit, LimitView, Source, Synced, Target};

/// Limits of kinds and groups. They hold for all processes at once.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// Makes a limit, or changes the one that the target has. More slots are filled at once; of fewer, what is
    /// too many ends by itself. [`Limit`](crate::error::StoreError::Limit) when it cannot be.
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<()>;

    /// Removes a limit; answers whether there was one. A group then has one slot again, or what its class has.
    async fn remove_limit(&self, target: &Target) -> StoreResult<bool>;

    /// Every limit, kinds first, by name.
    async fn limits(&self) -> StoreResult<Vec<LimitView>>;

    /// Makes the limits that a configuration names its own, and removes those that it named before and no
    /// longer does. Others stay. Each change is a transaction; after an error the call can be repeated.
    async fn sync_limits(&self, limits: &[Limit]) -> StoreResult<Synced> {
        for limit in limits {
            limit.check()?;
        }
        for limit in limits {
            self.put_limit(limit, Source::Config).await?;
        }
        let named: HashSet<&Target> = limits.iter().map(|limit| &limit.target).collect();
        let mut synced = Synced { put: limits.len(), removed: 0 };
        for view in self.limits().await? {
            if view.source == Source::Config && !named.contains(&view.limit.target) {
                synced.removed += usize::from(self.remove_limit(&view.limit.target).await?);
            }
        }
        Ok(synced)
    }
}
