//! Lets schedules tick. Every worker does; whoever is first moves a schedule on, and the others find it moved.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::port::{Store, StoreResult};
use milepost_core::schedule::{ScheduleView, Tick};
use milepost_core::stats::Stats;

use crate::incarnation::Shared;

/// How long a schedule that was added or changed may go unseen.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The most schedules that tick in one go.
const DUE_MAX: u32 = 100;
/// Nodes look at a tick within this time of one another, so that most find that it has happened.
const SPREAD: Duration = Duration::from_millis(20);

/// Runs until the incarnation ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let ticked = shared.stats.ticked.get();
        let wait = once(shared.store.as_ref(), &shared.stats).await.unwrap_or_else(|error| {
            tracing::warn!(error = error.chain(), "schedules could not be looked at; trying again");
            LOOK_EVERY
        });
        if shared.stats.ticked.get() > ticked {
            shared.coordinator.made_ready();
        }
        tokio::time::sleep(wait + SPREAD.mul_f64(fastrand::f64())).await;
    }
}

/// Lets the schedules tick that are due. Answers how long to wait before looking again.
async fn once(store: &dyn Store, stats: &Stats) -> StoreResult<Duration> {
    let clock = store.clock().await?;
    let wait = clock.next_at.map(|next_at| next_at.duration_since(clock.now));
    if let Some(wait) = wait.filter(jiff::SignedDuration::is_positive) {
        return Ok(wait.unsigned_abs().min(LOOK_EVERY));
    }
    if wait.is_none() {
        return Ok(LOOK_EVERY);
    }
    // One that cannot tick, for whatever reason, is tried again later and holds up no other.
    let mut moved = false;
    let due = store.due_schedules(DUE_MAX).await?;
    let now = store.clock().await?.now;
    for view in due {
        match tick(store, &view, now).await {
            Ok(made) => {
                stats.ticked.add(made);
                moved = true;
            }
            Err(error) => {
                let schedule = &view.schedule.name;
                tracing::error!(schedule, error = error.chain(), "the schedule could not tick; trying again");
            }
        }
    }
    Ok(if moved { Duration::ZERO } else { LOOK_EVERY })
}

/// Moves one schedule on, unless another node has. Answers how many jobs and batches that made.
async fn tick(store: &dyn Store, view: &ScheduleView, now: Timestamp) -> StoreResult<usize> {
    let Some(tick) = view.tick(now) else { return Ok(0) };
    let Some(ticked) = store.tick_schedule(&tick).await? else { return Ok(0) };
    let Tick { schedule, dropped, last_at, .. } = &tick;
    if *dropped > 0 {
        let since = view.next_at.map(tracing::field::display);
        tracing::warn!(schedule, dropped, since, made = ticked.made.len(), "missed ticks made nothing");
    }
    if let Some(refused) = &ticked.refused {
        let tick = last_at.map(tracing::field::display);
        tracing::error!(schedule, tick, why = %refused, "the batch of a tick could not be started; the schedule goes on");
    }
    Ok(ticked.new_ones())
}
