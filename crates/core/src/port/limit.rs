//! What keeps limits.

use std::collections::HashSet;

use async_trait::async_trait;

use super::StoreResult;
use crate::limit::{Limit, LimitView, Source, Target};
use crate::ownership::{Put, Synced};

/// Limits of kinds and groups. They hold for all processes at once.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// Makes a limit, or changes the one that the target has, but an operator's only for an operator. More slots are
    /// filled at once; of fewer, what is too many ends by itself. [`Limit`](crate::error::StoreError::Limit) when it
    /// cannot be.
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put>;

    /// Removes a limit, an operator's only for an operator; answers whether one was removed. A group then has one
    /// slot again, or what its class has.
    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool>;

    /// Every limit, kinds first, by name.
    async fn limits(&self) -> StoreResult<Vec<LimitView>>;

    /// Makes the limits of a configuration stand as it says, and removes those that it no longer names. Operators'
    /// limits are left alone. Each change is a transaction; after an error the call can be repeated.
    async fn sync_limits(&self, configured: &[Limit]) -> StoreResult<Synced> {
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
                && !named.contains(&target)
                && self.remove_limit(&target, Source::Config).await?
            {
                synced.removed.push(target.to_string());
            }
        }
        Ok(synced)
    }
}
