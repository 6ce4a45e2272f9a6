//! Publishing loop: publishes the log page by page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::event::{LeftOut, Outcome, Page, Publisher, RelayError, Subscription};
use milepost_core::port::{LogReader, WakeStream};

use super::unwanted::Unwanted;
use super::{Shared, WAVE_MAX, parks};
use crate::ordered_waves::Waves;

/// How often a publisher balances: checks for other publishers and free slots.
const BALANCE_EVERY: Duration = Duration::from_secs(1);
/// Maximum age, and maximum number of pages, of positions that are not stored yet: after a crash, this much is published again.
const IN_HAND_MAX: Duration = Duration::from_secs(1);
const PAGES_IN_HAND_MAX: usize = 4;
/// How often a publisher checks whether the positions of a restored database were accepted.
const RESEED_WAIT: Duration = Duration::from_secs(10);
/// Wait after the store did not answer.
const TROUBLE_WAIT: Duration = Duration::from_millis(500);

/// Publishes until the publisher is stopped.
pub(super) async fn publish_for_ever(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut pages = Pages {
        shared,
        reader: shared.store.reader(shared.publisher.clone()),
        wakes: shared.store.log_wakes(),
        subscribed: false,
        changes_recorded: false,
        slots: 0,
        looked_around: None,
        is_paused: false,
        in_hand: InHand::default(),
        unwanted: Unwanted::new(),
    };
    while !shared.stop.is_cancelled() {
        if let Err(error) = pages.step().await {
            let wait = wait_after(error, &shared.publisher.subscription)?;
            pages.looked_around = None;
            shared.rest(wait).await;
        }
    }
    if let Err(error) = pages.write_down().await {
        let subscription = &shared.publisher.subscription;
        tracing::warn!(subscription, %error, cause = cause(&error), "the position could not be stored");
    }
    Ok(())
}

/// Logs an error and returns how long to wait before the next attempt.
///
/// # Errors
/// The error, if no attempt can succeed.
fn wait_after(error: StoreError, subscription: &str) -> Result<Duration, StoreError> {
    match error {
        StoreError::Relay(RelayError::Restored(_)) => {
            tracing::error!(%error, "nothing is published until then");
            Ok(RESEED_WAIT)
        }
        StoreError::Relay(_) => Err(error),
        _ => {
            tracing::warn!(subscription, %error, cause = cause(&error), "the store did not answer; trying again");
            Ok(TROUBLE_WAIT)
        }
    }
}

fn cause(error: &StoreError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// The state of the publishing loop.
struct Pages<'a> {
    shared: &'a Arc<Shared>,
    reader: Box<dyn LogReader>,
    wakes: Box<dyn WakeStream>,
    /// Whether the subscription exists in the store.
    subscribed: bool,
    /// Whether exactly those state changes are recorded that the subscription selects.
    changes_recorded: bool,
    /// The number of slots that this publisher owns.
    slots: usize,
    looked_around: Option<Instant>,
    is_paused: bool,
    in_hand: InHand,
    unwanted: Unwanted,
}

/// Delivered events whose position is not stored yet.
#[derive(Default)]
struct InHand {
    events: usize,
    since: Option<Instant>,
}

impl InHand {
    fn add(&mut self, events: usize) {
        self.events += events;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Returns how long storing the position may still be delayed; `None`: there is nothing to store.
    fn may_wait(&self) -> Option<Duration> {
        self.since.map(|since| IN_HAND_MAX.saturating_sub(since.elapsed()))
    }
}

impl Pages<'_> {
    /// Runs one round: balances if due, publishes a page, and waits if there are no more events.
    async fn step(&mut self) -> Result<(), StoreError> {
        let shared = self.shared;
        if self.looked_around.is_none_or(|at| at.elapsed() >= BALANCE_EVERY) || !shared.is_held() {
            self.look_around().await?;
        }
        if self.slots == 0 {
            shared.rest(BALANCE_EVERY).await;
            return Ok(());
        }
        if let Some(wait) = shared.breaker.wait() {
            shared.rest(wait.min(BALANCE_EVERY)).await;
            return Ok(());
        }
        let mut page = self.reader.page(shared.options.page).await?;
        if let Some(passed) = self.unwanted.look(&mut page) {
            self.tell_unwanted(&passed);
        }
        let (more, any) = (page.more, !page.events.is_empty());
        if any {
            self.deliver(page).await?;
        } else {
            if !more {
                shared.breaker.found_nothing_new();
            }
            // Skips events that the subscription does not select.
            self.pass(0);
        }
        if self.in_hand.events >= PAGES_IN_HAND_MAX * shared.options.page.events_max
            || self.in_hand.may_wait() == Some(Duration::ZERO)
        {
            self.write_down().await?;
        }
        if !more && !any {
            self.wait_for_more().await;
        }
        Ok(())
    }

    /// Moves the reader past a page of which this number of events was delivered.
    fn pass(&mut self, events: usize) {
        if self.reader.pass() {
            self.in_hand.add(events);
        }
    }

    /// Stores the current position.
    async fn write_down(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.in_hand).since.is_some() {
            self.reader.commit(&Outcome::default()).await?;
        }
        Ok(())
    }

    async fn look_around(&mut self) -> Result<(), StoreError> {
        let shared = self.shared;
        self.write_down().await?;
        if !self.subscribed {
            let name = &shared.publisher.subscription;
            if shared.store.subscribe(name, shared.options.begin).await? {
                tracing::info!(
                    subscription = name,
                    begin = shared.options.begin.as_str(),
                    "created a new subscription"
                );
            }
            self.subscribed = true;
        }
        if !self.changes_recorded {
            self.record_changes().await?;
        }
        self.reader.stand_aside(shared.breaker.stands_aside());
        let asked_at = Instant::now();
        let holding = self.reader.balance().await?;
        shared.held_from(asked_at);
        self.looked_around = Some(asked_at);
        shared.parked.add(holding.parked);
        shared.stats.taken_over.add(holding.taken_over as u64);
        shared.stats.slots.set(holding.slots);
        shared.stats.parked_aggregates.set(shared.parked.count());
        self.tell_of(holding.slots, holding.paused.as_deref());
        Ok(())
    }

    async fn record_changes(&mut self) -> Result<(), StoreError> {
        let Subscription { name, changes, .. } = &self.shared.options.subscription;
        self.changes_recorded = self.shared.store.record_changes(name, changes).await?;
        if self.changes_recorded && !changes.is_empty() {
            tracing::info!(subscription = name, kinds = ?changes.kinds, dags = ?changes.dags, "state changes are recorded");
        } else if !self.changes_recorded {
            tracing::warn!(
                subscription = name,
                "the recording of state changes cannot be changed while transactions that change jobs are open; trying again"
            );
        }
        Ok(())
    }

    fn tell_of(&mut self, slots: usize, paused: Option<&str>) {
        let subscription = &self.shared.publisher.subscription;
        if std::mem::replace(&mut self.slots, slots) != slots {
            tracing::info!(subscription, slots, "acquired or released slots of the log");
        }
        let was_paused = std::mem::replace(&mut self.is_paused, paused.is_some());
        if was_paused == self.is_paused {
            return;
        }
        match paused {
            Some(why) => tracing::warn!(subscription, why, "the subscription is paused"),
            None => tracing::info!(subscription, "the subscription was resumed"),
        }
    }

    fn tell_unwanted(&self, passed: &LeftOut) {
        let Publisher { subscription, filter, .. } = &self.shared.publisher;
        if filter.aggregate_types.is_empty() && filter.event_types.is_empty() {
            // The log has only state changes, which this subscription does not select.
            return;
        }
        let seen: Vec<String> = passed.types.iter().map(|(of, event)| format!("{event} of {of}")).collect();
        tracing::warn!(
            subscription,
            aggregate_types = ?filter.aggregate_types,
            event_types = ?filter.event_types,
            events = passed.events,
            seen = seen.join(", "),
            "the filter of the subscription matches none of the existing events; check the spelling of its types"
        );
    }

    /// Publishes a page wave by wave and stores the results.
    async fn deliver(&mut self, page: Page) -> Result<(), StoreError> {
        let shared = self.shared;
        let (events, more, mut outcome) = (page.events.len(), page.more, Outcome::default());
        let mut sent = 0;
        let mut held = shared.parked.of(page.events.iter().map(|event| &event.aggregate));
        let mut waves = Waves::of(page.events);
        held.iter().for_each(|aggregate| waves.hold(aggregate.clone()));
        while shared.may_send() && shared.breaker.wait().is_none() {
            let wave = waves.next(shared.breaker.wave_max(WAVE_MAX));
            if wave.is_empty() {
                if sent == 0 && !more {
                    shared.breaker.found_nothing_new();
                }
                break;
            }
            sent += wave.len();
            let ends = shared.send(&wave, |_| 0, true).await;
            outcome.untried.extend(wave[ends.len()..].iter().map(|event| event.id));
            let all_tried = ends.len() == wave.len();
            for (event, end) in wave.into_iter().zip(ends) {
                let Some(failure) = end else { continue };
                if parks(&failure) {
                    held.push(event.aggregate.clone());
                }
                // Also after an event that is abandoned. If the next one was sent before that is stored, a crash would make the abandoned one
                // be sent after it.
                waves.hold(event.aggregate);
                outcome.failures.push(failure);
            }
            if !all_tried {
                // Stop here, so that no later event overtakes the events that are read again.
                break;
            }
        }
        let (behind, untried) = waves.into_rest();
        held.extend(behind.iter().map(|event| event.aggregate.clone()));
        outcome.behind = behind.into_iter().map(|event| event.id).collect();
        outcome.untried.extend(untried.into_iter().map(|event| event.id));
        if outcome == Outcome::default() {
            self.pass(events);
        } else {
            self.in_hand = InHand::default();
            self.reader.commit(&outcome).await?;
        }
        // Only after the commit: the retry loop may have just removed an aggregate that had no parked events left.
        shared.parked.add(held);
        shared.stats.parked_aggregates.set(shared.parked.count());
        shared.stats.pages.add(1);
        Ok(())
    }

    /// Waits for a notification of new events, with a timeout.
    async fn wait_for_more(&mut self) {
        let shared = self.shared;
        let look_in = shared.options.poll_interval.min(BALANCE_EVERY);
        let look_in = self.in_hand.may_wait().map_or(look_in, |wait| look_in.min(wait));
        let hinted = tokio::select! {
            _ = self.wakes.next() => true,
            () = tokio::time::sleep(look_in) => false,
            () = shared.stop.cancelled() => false,
        };
        if hinted && !shared.options.linger.is_zero() {
            shared.rest(shared.options.linger).await;
        }
    }
}
