//! Maintenance that any worker performs: recovery of jobs, overdue stops, missed group slots, inbox gaps, server promotions, rollups.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::inbox::listing::GivenUp;
use milepost_core::port::StoreResult;
use milepost_core::retry::RetryPolicy;
use milepost_core::rollup;

use crate::shared::Shared;

/// The most jobs recovered or stopped at a time.
const BATCH_MAX: u32 = 500;
/// The search for groups with a free slot may use at most one part in this many of the time.
const FILL_SHARE: u32 = 20;
/// The interval between two checks of inbox gaps.
const GAPS_EVERY: Duration = Duration::from_secs(5);
/// The interval between two checks for a promotion of the database server.
const PROMOTIONS_EVERY: Duration = Duration::from_secs(5);
/// The interval in which a worker checks whether the next rollup is due. One of all workers makes it.
const ROLLUPS_EVERY: Duration = Duration::from_secs(5);
/// The most events dead-lettered at a time.
const GAP_EVENTS_MAX: u32 = 500;

/// Runs until the registration ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    let interval = (shared.options.lease / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
    let (mut fill_after, mut gaps_after, mut promotions_after, mut rollup_after) =
        (Instant::now(), Instant::now(), Instant::now(), Instant::now());
    loop {
        // Jitter, so that workers do not check at the same time.
        tokio::time::sleep(interval.mul_f64(0.75 + 0.5 * fastrand::f64())).await;
        // In sequence; a failure of one step does not skip the others.
        let steps = [
            rescue(&shared).await,
            stop_overdue(&shared).await,
            fill_groups(&shared, &mut fill_after).await,
            give_up_gaps(&shared, &mut gaps_after).await,
            notice_promotion(&shared, &mut promotions_after).await,
            roll_up(&shared, &mut rollup_after).await,
        ];
        for error in steps.into_iter().filter_map(Result::err) {
            tracing::warn!(error = error.chain(), "maintenance failed; trying again");
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
        tracing::warn!(jobs = rescued.len(), "rescued the jobs of workers whose lease has expired");
    }
    Ok(())
}

async fn stop_overdue(shared: &Shared) -> StoreResult<()> {
    let stopped = shared.store.stop_overdue(BATCH_MAX).await?;
    for job in &stopped {
        tracing::warn!(%job, "the job did not stop within its grace period and was fenced");
    }
    if !stopped.is_empty() {
        shared.coordinator.made_ready();
    }
    Ok(())
}

/// Fills groups with free slots. The cost grows with the number of waiting groups, so the interval depends on the cost of the last check.
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

/// Dead-letters or skips inbox events that have waited too long for a missing one.
async fn give_up_gaps(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    if Instant::now() < *after {
        return Ok(());
    }
    let given_up = shared.store.give_up_gaps(None, GAP_EVENTS_MAX).await?;
    if given_up.gaps == 0 {
        *after = Instant::now() + GAPS_EVERY;
    } else {
        let GivenUp { gaps, letters } = given_up;
        tracing::warn!(gaps, letters, "inboxes stopped waiting for missing events; see the dead letters");
    }
    Ok(())
}

/// Warns operators that commits can be missing after a promotion, because nothing else reports that.
async fn notice_promotion(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    if Instant::now() < *after {
        return Ok(());
    }
    let noticed = shared.store.notice_promotion().await?;
    *after = Instant::now() + PROMOTIONS_EVERY;
    if let Some(timeline) = noticed {
        tracing::error!(
            timeline,
            "the database server was promoted or restored; commits that its predecessor had acknowledged but not replicated are lost"
        );
    }
    Ok(())
}

/// Counts starts and ends of jobs for charts.
async fn roll_up(shared: &Shared, after: &mut Instant) -> StoreResult<()> {
    if Instant::now() < *after {
        return Ok(());
    }
    *after = Instant::now() + ROLLUPS_EVERY;
    shared.store.roll_up(rollup::EVERY).await?;
    Ok(())
}
