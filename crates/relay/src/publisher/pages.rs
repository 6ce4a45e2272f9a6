//! Publishes the log, page by page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::event::{Outcome, Page};
use milepost_core::port::{LogReader, WakeStream};

use super::{Shared, WAVE_MAX, parks};
use crate::waves::Waves;

/// How often a publisher looks around: who else publishes, which slots are free.
const BALANCE_EVERY: Duration = Duration::from_secs(1);
/// How long it waits after the store did not answer.
const TROUBLE_WAIT: Duration = Duration::from_millis(500);

/// Publishes until it is to stop.
pub(super) async fn publish_for_ever(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut pages = Pages {
        shared,
        reader: shared.store.reader(shared.publisher.clone()),
        wakes: shared.store.log_wakes(),
        subscribed: false,
        slots: 0,
        looked_around: None,
        is_paused: false,
    };
    while !shared.stop.is_cancelled() {
        match pages.step().await {
            Ok(()) => {}
            Err(error @ StoreError::Relay(_)) => return Err(error),
            Err(error) => {
                let subscription = &shared.publisher.subscription;
                tracing::warn!(subscription, %error, cause = cause(&error), "the store did not answer; trying again");
                pages.looked_around = None;
                shared.rest(TROUBLE_WAIT).await;
            }
        }
    }
    Ok(())
}

fn cause(error: &StoreError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// The loop that publishes pages.
struct Pages<'a> {
    shared: &'a Arc<Shared>,
    reader: Box<dyn LogReader>,
    wakes: Box<dyn WakeStream>,
    /// Whether the store knows the subscription.
    subscribed: bool,
    /// How many slots are held.
    slots: usize,
    looked_around: Option<Instant>,
    is_paused: bool,
}

impl Pages<'_> {
    /// One round: look around if it is time, then a page, then a rest if there is nothing more.
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
        let page = self.reader.page(shared.options.page).await?;
        let (more, any) = (page.more, !page.events.is_empty());
        if any {
            self.deliver(page).await?;
        } else {
            // Past what the subscription does not want.
            self.reader.commit(&Outcome::default()).await?;
        }
        if !more && !any {
            self.wait_for_more().await;
        }
        Ok(())
    }

    async fn look_around(&mut self) -> Result<(), StoreError> {
        let shared = self.shared;
        if !self.subscribed {
            let name = &shared.publisher.subscription;
            if shared.store.subscribe(name, shared.options.begin).await? {
                tracing::info!(subscription = name, begin = ?shared.options.begin, "a new subscription");
            }
            self.subscribed = true;
        }
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

    fn tell_of(&mut self, slots: usize, paused: Option<&str>) {
        let subscription = &self.shared.publisher.subscription;
        if std::mem::replace(&mut self.slots, slots) != slots {
            tracing::info!(subscription, slots, "slots of the log are held");
        }
        let was_paused = std::mem::replace(&mut self.is_paused, paused.is_some());
        if was_paused == self.is_paused {
            return;
        }
        match paused {
            Some(why) => tracing::warn!(subscription, why, "the subscription is paused"),
            None => tracing::info!(subscription, "the subscription goes on"),
        }
    }

    /// Publishes a page wave by wave, and writes down what became of it.
    async fn deliver(&mut self, page: Page) -> Result<(), StoreError> {
        let shared = self.shared;
        let mut outcome = Outcome::default();
        let mut held = shared.parked.of(page.events.iter().map(|event| &event.aggregate));
        let mut waves = Waves::of(page.events);
        held.iter().for_each(|aggregate| waves.hold(aggregate.clone()));
        while shared.may_send() && shared.breaker.wait().is_none() {
            let wave = waves.next(shared.breaker.wave_max(WAVE_MAX));
            if wave.is_empty() {
                break;
            }
            let ends = shared.send(&wave, |_| 0, true).await;
            outcome.untried.extend(wave[ends.len()..].iter().map(|event| event.id));
            let all_tried = ends.len() == wave.len();
            for (event, end) in wave.into_iter().zip(ends) {
                let Some(failure) = end else { continue };
                if parks(&failure) {
                    held.push(event.aggregate.clone());
                    waves.hold(event.aggregate);
                }
                outcome.failures.push(failure);
            }
            if !all_tried {
                // Nothing overtakes what is read again.
                break;
            }
        }
        let (behind, untried) = waves.into_rest();
        outcome.behind = behind.into_iter().map(|event| event.id).collect();
        outcome.untried.extend(untried.into_iter().map(|event| event.id));
        self.reader.commit(&outcome).await?;
        // Not before that: what tries parked events again may have taken one off that had none left.
        shared.parked.add(held);
        shared.stats.parked_aggregates.set(shared.parked.count());
        shared.stats.pages.add(1);
        Ok(())
    }

    /// Waits for a hint that there is more, for a while.
    async fn wait_for_more(&mut self) {
        let shared = self.shared;
        let look_in = shared.options.poll_interval.min(BALANCE_EVERY);
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
