//! Upkeep that any worker does for all: rescue, overdue stops, missed group slots, gaps of inboxes, promotions of the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::inbox::listing::GivenUp;
use milepost_core::port::StoreResult;
use milepost_core::retry::RetryPolicy;

use crate::incarnation::Shared;

/// The most jobs rescued or stopped in one go.
const BATCH_MAX: u32 = 500;
/// Looking for groups with a slot free may take one part in this many of the time.
const FILL_SHARE: u32 = 20;
/// How often gaps of inboxes are looked at.
const GAPS_EVERY: Duration = Duration::from_secs(5);
/// How often the server of the store is looked at, whether it was promoted.
const PROMOTIONS_EVERY: Duration = Duration::from_secs(5);
/// The most events that are given up in one go.
const GAP_EVENTS_MAX: u32 = 500;

/// Runs until the incarnation ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    let interval = (shared.options.lease / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
    let (mut fill_after, mut gaps_after, mut promotions_after) =
        (Instant::now(), Instant::now(), Instant::now());
    loop {
        // Spread, so that many workers do not all look at the same moment.
        tokio::time::sleep(interval.mul_f64(0.75 + 0.5 * fastrand::f64())).await;
        // One after the other, and none for the failure of another.
        let steps = [
            rescue(&shared).await,
            stop_overdue(&shared).await,
            fill_groups(&shared, &mut fill_after).await,
            give_up_gaps(&shared, &mut gaps_after).await,
            notice_promotion(&shared, &mut promotions_after).await,
        ];
        for error in steps.into_iter().filter_map(Result::err) {
            tracing::warn!(error = error.chain(), "upkeep failed; trying again");
        }
    }
}

async fn rescue(shared: &Shared) -> StoreResult<()> {
    let delay = |_: &str, attempt: u32, policy: Option<&RetryPolicy>| {
        policy.copied().unwrap_or_default().delay(attempt, fastrand::f64())
    };
    let rescued = shared.store.rescue_expired(BATCH_MAX, &delay).await?;
    if !rescued.is_empty() {
        shared.stats.rescued.add(rescued.len());
        shared.coordinator.made_ready();
        tracing::warn!(jobs = rescued.len(), "took back jobs of workers whose lease ran out");
    }
    Ok(())
}

async fn stop_overdue(shared: &Shared) -> StoreResult<()> {
    let stopped = shared.store.stop_overdue(BATCH_MAX).await?;
    for job in &stopped {
        tracing::warn!(%job, "did not stop in its grace time and was fenced off");
    }
    if !stopped.is_empty() {
        shared.coordinator.made_ready();
    }
    Ok(())
}

/// A look at all groups that wait costs the more the more there are: as often as its cost allows.
async fn fill_groups(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    let began = Instant::now();
    if began < *after {
        return Ok(());
    }
    let filled = shared.store.fill_groups().await;
    *after = Instant::now() + began.elapsed() * FILL_SHARE;
    if filled? > 0 {
        shared.coordinator.made_ready();
    }
    Ok(())
}

/// What waits in inboxes for events that do not come.
async fn give_up_gaps(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    if Instant::now() < *after {
        return Ok(());
    }
    let given_up = shared.store.give_up_gaps(None, GAP_EVENTS_MAX).await?;
    if given_up.gaps == 0 {
        *after = Instant::now() + GAPS_EVERY;
    } else {
        let GivenUp { gaps, letters } = given_up;
        tracing::warn!(gaps, letters, "gave up events that inboxes waited for; see the dead letters");
    }
    Ok(())
}

/// Tells people that commits can be missing, since nothing else does.
async fn notice_promotion(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    if Instant::now() < *after {
        return Ok(());
    }
    let noticed = shared.store.notice_promotion().await?;
    *after = Instant::now() + PROMOTIONS_EVERY;
    if let Some(timeline) = noticed {
        tracing::error!(
            timeline,
            "the database server was promoted or restored; what its predecessor had acknowledged and not replicated is lost"
        );
    }
    Ok(())
}
