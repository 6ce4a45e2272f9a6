//! The load: jobs and events at a steady rate, each call repeated until its outcome is known.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::configuration::KIND;
use crate::receiver::{Numbered, now_ms};

/// The interval of calls.
const EVERY: Duration = Duration::from_millis(50);
/// The pause before a call without an answer is repeated.
const REPEAT_AFTER: Duration = Duration::from_millis(100);
/// The number of aggregates.
const AGGREGATES: u64 = 50;
/// The number of jobs for each event.
const JOBS_OF_EVENT: u64 = 5;

/// Creates numbered jobs and events.
pub(crate) struct Load {
    store: Arc<dyn Store>,
    /// The number of jobs so far.
    pub(crate) jobs: u64,
    /// The number of events so far.
    pub(crate) events: u64,
}

impl Load {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, jobs: 0, events: 0 }
    }

    /// Creates jobs at this rate, and a fifth as many events, for a while. Jobs that are due while a call has no answer are created after it.
    pub(crate) async fn run(&mut self, jobs_per_s: f64, duration: Duration) -> Result<()> {
        let (began, before) = (Instant::now(), self.jobs);
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while began.elapsed() < duration {
            ticks.tick().await;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
            let due = before + (began.elapsed().as_secs_f64() * jobs_per_s) as u64;
            self.create(due.saturating_sub(self.jobs).min(500)).await?;
        }
        Ok(())
    }

    /// Creates jobs in one call, and the events that belong to them.
    pub(crate) async fn create(&mut self, count: u64) -> Result<()> {
        let job = |number| NewJob::new(KIND, &Numbered { number, aggregate: 0, at_ms: now_ms() });
        let jobs = (self.jobs..self.jobs + count).map(job).collect::<Result<Vec<_>, _>>()?;
        if !jobs.is_empty() {
            self.until_known(|| self.store.enqueue_many(&jobs)).await?;
        }
        self.jobs += count;
        let events = (self.events..self.jobs / JOBS_OF_EVENT).map(event).collect::<Result<Vec<_>>>()?;
        if !events.is_empty() {
            self.until_known(|| self.store.emit_many(&events)).await?;
        }
        self.events += events.len() as u64;
        Ok(())
    }

    async fn until_known<T, F: Future<Output = milepost_core::port::StoreResult<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T> {
        loop {
            match call().await {
                Err(error) if error.is_transient() => tokio::time::sleep(REPEAT_AFTER).await,
                answer => return Ok(answer?),
            }
        }
    }
}

fn event(number: u64) -> Result<NewEvent> {
    let (aggregate, number) = (number % AGGREGATES, number / AGGREGATES);
    let payload = Numbered { number, aggregate, at_ms: now_ms() };
    Ok(NewEvent::new(Aggregate::new("soak", aggregate.to_string()), "soak.happened", &payload)?)
}
