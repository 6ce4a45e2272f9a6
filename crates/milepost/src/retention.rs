//! Retention of finished jobs, at low priority: small batches with long pauses.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::port::{Store, StoreResult};
use milepost_core::retention::{Keep, Pace, Pruned, RetentionPolicy};
use milepost_core::stats::Stats;

use crate::shared::Shared;

/// Small batches with long pauses. All workers take turns, which uses at most an eleventh of one connection's time.
const PACE: Pace = Pace { limit: 500, rest: 10 };
/// The wait when nothing is left to do, or another worker does it.
const IDLE: Duration = Duration::from_secs(30);
/// The shortest wait while more is due.
const BREATH: Duration = Duration::from_millis(20);

/// Runs until the registration ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let began = tokio::time::Instant::now();
        let pruned = once(&shared).await;
        rest(began.elapsed(), pruned.map(|pruned| pruned.more)).await;
    }
}

/// Deletes events of the log that are old and that every subscription has handled, until it is dropped. Workers do this themselves; this is
/// for a process without workers.
pub async fn forget_events(store: Arc<dyn Store>, keep: Keep) {
    let configured = RetentionPolicy { events: keep, ..RetentionPolicy::default() };
    loop {
        let began = tokio::time::Instant::now();
        let pruned = prune_log(store.as_ref(), &configured).await;
        if let Ok(Some(events @ 1..)) = pruned {
            tracing::debug!(events, "deleted published events");
        }
        rest(began.elapsed(), pruned.map(|events| events.is_some())).await;
    }
}

/// Deletes one batch of old events; `None`: there are none.
async fn prune_log(store: &dyn Store, configured: &RetentionPolicy) -> StoreResult<Option<u64>> {
    let Some(period) = store.retention(configured).await?.events.period() else { return Ok(None) };
    if store.may_delete().await? { store.prune_log(period).await } else { Ok(None) }
}

/// Waits after a batch that took `took`. `more`: whether there is more to delete.
async fn rest(took: Duration, more: StoreResult<bool>) {
    let wait = match more {
        Ok(true) => (took * PACE.rest).max(BREATH),
        Ok(false) => IDLE,
        Err(error) => {
            tracing::warn!(error = error.chain(), "retention failed; trying again");
            IDLE
        }
    };
    // Jitter, so that workers do not check at the same time; it never shortens the wait.
    tokio::time::sleep(wait.mul_f64(1.0 + 0.25 * fastrand::f64())).await;
}

async fn once(shared: &Shared) -> StoreResult<Pruned> {
    if !shared.store.may_delete().await? {
        return Ok(Pruned::default());
    }
    let policy = &shared.store.retention(&shared.options.retention).await?;
    let mut pruned = shared.store.prune(policy, PACE).await?;
    if let Some(period) = policy.batches.period() {
        let rows = shared.store.prune_batches(period).await?;
        pruned.rows += rows;
        pruned.more |= rows > 0;
    }
    if let Some(period) = policy.events.period()
        && let Some(events) = shared.store.prune_log(period).await?
    {
        pruned.what.events = events;
        pruned.rows += events;
        pruned.more = true;
    }
    tell(&shared.stats, &pruned);
    Ok(pruned)
}

/// Counts deleted rows; deletions of dead letters are also logged.
fn tell(stats: &Stats, Pruned { what, rows, .. }: &Pruned) {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    stats.pruned.add(count(what.jobs()));
    stats.dead_letters_pruned.add(count(what.failed));
    stats.inbox_dead_pruned.add(count(what.inbox_dead));
    if what.failed > 0 {
        tracing::warn!(jobs = what.failed, "deleted expired dead letters");
    }
    if what.inbox_dead > 0 {
        tracing::warn!(letters = what.inbox_dead, "deleted expired dead letters of inboxes");
    }
    if *rows > 0 {
        tracing::debug!(jobs = what.jobs(), rows, "deleted expired records");
    }
}
