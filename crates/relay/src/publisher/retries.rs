//! Retry loop: publishes parked events when they are due, while new pages are published.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, DueAggregate, Event, Retried};
use milepost_core::ident::EventId;
use tokio_util::sync::CancellationToken;

use super::{Shared, WAVE_MAX};
use crate::ordered_waves::Waves;

/// How many aggregates are retried at the same time.
const AGGREGATES_MAX: u32 = 100;
/// How often the loop checks for events that an operator wants to be retried now.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Retries parked events until `ended` is cancelled.
pub(super) async fn retry_for_ever(shared: Arc<Shared>, ended: CancellationToken) {
    while !ended.is_cancelled() {
        let wait = match retry_due(&shared).await {
            Ok(wait) => wait,
            Err(error) => {
                let subscription = &shared.publisher.subscription;
                tracing::warn!(subscription, %error, "parked events could not be read; trying again");
                Some(LOOK_EVERY)
            }
        };
        let Some(wait) = wait else { continue };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.parked.added() => {}
            () = ended.cancelled() => {}
        }
    }
}

/// Retries the events that are due. Returns how long to wait before the next check; `None`: more events may be due now.
async fn retry_due(shared: &Shared) -> Result<Option<Duration>, StoreError> {
    if !shared.may_send() {
        return Ok(Some(LOOK_EVERY));
    }
    if let Some(wait) = shared.breaker.wait() {
        return Ok(Some(wait));
    }
    if !shared.breaker.may_try_parked() {
        return Ok(Some(LOOK_EVERY));
    }
    let due = shared.store.due(&shared.publisher, AGGREGATES_MAX, shared.options.page).await?;
    if due.aggregates.is_empty() {
        return Ok(Some(due.next_in.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)));
    }
    // The publisher does not yet know aggregates whose events an operator has requested to publish again.
    shared.parked.add(due.aggregates.iter().map(|of| of.aggregate.clone()));
    let retried = send(shared, due.aggregates).await;
    let asked_at = shared.parked.now();
    let drained = shared.store.settle_parked(&shared.publisher, &retried).await?;
    shared.parked.remove(&drained, asked_at);
    shared.stats.parked_aggregates.set(shared.parked.count());
    Ok(None)
}

/// Publishes due events: those of each aggregate in order, and none after one that was not delivered.
async fn send(shared: &Shared, due: Vec<DueAggregate>) -> Vec<Retried> {
    let mut ends: HashMap<Aggregate, Retried> = HashMap::new();
    let mut attempts: HashMap<EventId, u32> = HashMap::new();
    let mut events = Vec::new();
    for of in due {
        attempts.extend(of.events.first().map(|first| (first.id, of.deliveries)));
        // Events that are published again may include some that the subscription does not select. The filter may have changed since others were
        // parked, but it has selected these.
        let (wanted, others): (Vec<Event>, Vec<Event>) = of
            .events
            .into_iter()
            .partition(|event| !of.replayed.contains(&event.id) || shared.publisher.filter.has(event));
        events.extend(wanted);
        let (aggregate, slot, token, due_at) = (of.aggregate.clone(), of.slot, of.token, of.due_at);
        let delivered = others.iter().map(|event| event.id).collect();
        let end = Retried { aggregate, slot, token, due_at, delivered, failures: Vec::new() };
        ends.insert(of.aggregate, end);
    }
    let mut waves = Waves::of(events);
    while shared.may_send() && shared.breaker.wait().is_none() {
        let wave = waves.next(shared.breaker.parked_wave_max(WAVE_MAX));
        if wave.is_empty() {
            break;
        }
        let attempts_of = |id: EventId| attempts.get(&id).copied().unwrap_or(0);
        let answers = shared.send(&wave, |event| attempts_of(event.id), false).await;
        let all_tried = answers.len() == wave.len();
        for (event, failure) in wave.into_iter().zip(answers) {
            let Some(of) = ends.get_mut(&event.aggregate) else { continue };
            match failure {
                None => of.delivered.push(event.id),
                Some(failure) => {
                    // Also after an event that is abandoned: the next one is sent once that is stored.
                    waves.hold(event.aggregate);
                    of.failures.push(failure);
                }
            }
        }
        if !all_tried {
            break;
        }
    }
    let answered = ends.into_values().filter(|of| !of.delivered.is_empty() || !of.failures.is_empty());
    answered.collect()
}
