//! Ticks of schedules. Every worker tries each tick; the first one moves the schedule, and the others find it moved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use milepost_core::port::{Store, StoreResult};
use milepost_core::schedule::{Clock, ScheduleView, Tick};
use milepost_core::stats::Stats;

use crate::shared::Shared;

/// How long it may take until a new or changed schedule is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The most schedules that tick at a time.
const DUE_MAX: u32 = 100;
/// Nodes check a tick within this time of one another, so that most of them find it done.
const SPREAD: Duration = Duration::from_millis(20);

/// By how much the store's clock may differ from this process's before it counts as set.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// Notices when the store's clock is set, by comparing it with the time that passes here.
#[derive(Default)]
struct ClockWatch {
    began: Option<(Instant, Timestamp)>,
}

impl ClockWatch {
    /// Returns by how much the clock was set since the first call, or since it was last noticed; at the first call, zero: it may have been set
    /// before.
    fn was_set(&mut self, at: Instant, now: Timestamp) -> Option<SignedDuration> {
        let Some((began_at, began)) = self.began else {
            self.began = Some((at, now));
            return Some(SignedDuration::ZERO);
        };
        let passed = SignedDuration::try_from(at.duration_since(began_at)).unwrap_or(SignedDuration::MAX);
        let difference = now.duration_since(began).saturating_sub(passed);
        if difference.abs() <= CLOCK_TOLERANCE {
            return None;
        }
        self.began = Some((at, now));
        Some(difference)
    }
}

/// Runs until the registration ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut watch = ClockWatch::default();
    loop {
        let ticked = shared.stats.ticked.get();
        let wait = once(shared.store.as_ref(), &shared.stats, &mut watch).await.unwrap_or_else(|error| {
            tracing::warn!(error = error.chain(), "schedules could not be read; trying again");
            LOOK_EVERY
        });
        if shared.stats.ticked.get() > ticked {
            shared.coordinator.made_ready();
        }
        tokio::time::sleep(wait + SPREAD.mul_f64(fastrand::f64())).await;
    }
}

/// Runs the due ticks. Returns how long to wait before the next check.
async fn once(store: &dyn Store, stats: &Stats, watch: &mut ClockWatch) -> StoreResult<Duration> {
    let clock = watched_clock(store, watch).await?;
    let wait = clock.next_at.map(|next_at| next_at.duration_since(clock.now));
    if let Some(wait) = wait.filter(jiff::SignedDuration::is_positive) {
        return Ok(wait.unsigned_abs().min(LOOK_EVERY));
    }
    if wait.is_none() {
        return Ok(LOOK_EVERY);
    }
    // A schedule that cannot tick, for whatever reason, is retried later and does not delay others.
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
                tracing::error!(
                    schedule,
                    error = error.chain(),
                    "the tick of the schedule failed; trying again"
                );
            }
        }
    }
    Ok(if moved { Duration::ZERO } else { LOOK_EVERY })
}

/// The store's clock. If it was set, schedules are moved back first.
async fn watched_clock(store: &dyn Store, watch: &mut ClockWatch) -> StoreResult<Clock> {
    let clock = store.clock().await?;
    let Some(difference) = watch.was_set(Instant::now(), clock.now) else { return Ok(clock) };
    if !difference.is_zero() {
        tracing::warn!(by_s = difference.as_secs(), "the store's clock was set");
    }
    step_back(store, clock.now).await?;
    store.clock().await
}

/// Moves schedules back that ticked while the clock was ahead.
async fn step_back(store: &dyn Store, now: Timestamp) -> StoreResult<()> {
    for view in store.schedules().await? {
        let Some(step) = view.step_back(now) else { continue };
        if store.tick_schedule(&step).await?.is_some() {
            let schedule = &view.schedule.name;
            let (from, to) =
                (view.next_at.map(tracing::field::display), step.next_at.map(tracing::field::display));
            tracing::warn!(
                schedule,
                from,
                to,
                "the schedule had ticked by a clock that was ahead; its next tick is moved back"
            );
        }
    }
    Ok(())
}

/// Moves one schedule to its next tick, unless another node has. Returns how many jobs and batches were created.
async fn tick(store: &dyn Store, view: &ScheduleView, now: Timestamp) -> StoreResult<usize> {
    let Some(tick) = view.tick(now) else { return Ok(0) };
    let Some(ticked) = store.tick_schedule(&tick).await? else { return Ok(0) };
    let Tick { schedule, dropped, last_at, .. } = &tick;
    if *dropped > 0 {
        let since = view.next_at.map(tracing::field::display);
        tracing::warn!(schedule, dropped, since, made = ticked.made.len(), "missed ticks were dropped");
    }
    if let Some(refused) = &ticked.refused {
        let tick = last_at.map(tracing::field::display);
        tracing::error!(schedule, tick, why = %refused,
            "the batch of a tick could not be started; the schedule continues");
    }
    Ok(ticked.new_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_once_and_one_that_runs_is_not() {
        let (at, now) = (Instant::now(), Timestamp::from_second(1_800_000_000).unwrap());
        let later = |s: u64| at + Duration::from_secs(s);
        let shows = |s: i64| now + SignedDuration::from_secs(s);
        let mut watch = ClockWatch::default();
        assert_eq!(watch.was_set(at, now), Some(SignedDuration::ZERO), "the first reading");
        assert_eq!(watch.was_set(later(100), shows(104)), None);
        assert_eq!(watch.was_set(later(110), shows(3_710)), Some(SignedDuration::from_secs(3_600)), "ahead");
        assert_eq!(watch.was_set(later(120), shows(3_720)), None);
        assert_eq!(
            watch.was_set(later(130), shows(130)),
            Some(SignedDuration::from_secs(-3_600)),
            "set back"
        );
        // Slow adjustments, as a time service makes them.
        assert_eq!(watch.was_set(later(140), shows(137)), None);
        assert_eq!(watch.was_set(later(150), shows(144)), Some(SignedDuration::from_secs(-6)));
    }
}
