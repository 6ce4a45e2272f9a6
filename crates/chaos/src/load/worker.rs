//! A worker process: runs jobs and publishes events.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use milepost::{Context, JobError, Outcome, RetryPolicy, Worker};
use milepost_core::error::StoreError;
use milepost_core::event::{Begin, Event, Subscription};
use milepost_postgres::WakeMode;
use milepost_relay::publisher::{PublisherOptions, PublisherStats, publish};
use milepost_relay::sink::{Delivery, Sink, SinkDown};
use milepost_testkit::home::{self, Home};

use super::setup::{self, CHANGES, EFFECT, FLAKY, LEASE, PLAIN, QUEUE, RATED, SUBSCRIPTION};
use super::{ProcessArgs, patience, until_parent_ends};
use crate::record::{Effect, EndAnswer, What};
use crate::witness::{Witness, now_ms};

/// The pause before a worker that could not register is started again.
const START_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The longest duration of a handler, in milliseconds.
const TAKES_MS_MAX: u64 = 40;
/// A job in this number fails, if its kind fails at all.
const FAILS_IN: u64 = 3;

/// Runs until the parent closes standard input.
///
/// # Errors
/// When the worker cannot register, or the witness cannot write.
pub async fn run(args: ProcessArgs) -> Result<()> {
    let home = home::open(&args.store, patience(WakeMode::Listen)).await;
    let witness = Arc::new(Witness::create(&args.folder, &args.name)?);
    let stop = until_parent_ends();
    let soon = RetryPolicy::fixed(Duration::from_millis(100));
    let mut builder = Worker::builder(home.store()).queues([QUEUE]).options(|options| {
        options.name.clone_from(&args.name);
        options.lease = LEASE;
        options.poll_interval = Duration::from_millis(200);
        options.concurrency = 8;
    });
    for kind in [EFFECT, PLAIN, FLAKY, RATED] {
        let (home, witness) = (home.clone(), witness.clone());
        builder = builder.handle_kind(kind, soon, move |context| {
            let (home, witness) = (home.clone(), witness.clone());
            async move { handle(kind, &context, home.as_ref(), &witness).await }
        });
    }
    let builder = builder.bulk(setup::bulk(home.as_ref(), witness.clone())?);
    // A fault can hit the begin of a worker, which a supervisor would start again.
    let worker = loop {
        match builder.clone().start().await {
            Err(error) if error.is_transient() => tokio::time::sleep(START_AGAIN_AFTER).await,
            started => break started?,
        }
    };
    let emitted = Subscription::new(SUBSCRIPTION);
    let changes = Subscription::new(CHANGES).changes(setup::changes());
    let publishing = [emitted, changes].map(|subscription| {
        let sink =
            Arc::new(WitnessSink { witness: witness.clone(), subscription: subscription.name.clone() });
        let options = PublisherOptions {
            lease: LEASE,
            poll_interval: Duration::from_millis(200),
            begin: Begin::Beginning,
            ..PublisherOptions::new(subscription, args.name.clone())
        };
        publish(home.store(), sink, options, Arc::new(PublisherStats::default()), stop.clone())
    });
    let [emitted, changes] = publishing;
    tokio::try_join!(emitted, changes)?;
    worker.shutdown().await;
    Ok(())
}

async fn handle(
    kind: &str,
    context: &Context,
    home: &dyn Home,
    witness: &Witness,
) -> Result<Outcome, JobError> {
    let run = context.run();
    let (job, token) = (run.job.to_string(), u64::from(run.token.0.unsigned_abs()));
    witness.saw(Effect::Began { job: job.clone(), token, at_ms: now_ms() });
    tokio::time::sleep(Duration::from_millis(fastrand::u64(..TAKES_MS_MAX))).await;
    let finished = Effect::Finished { job: job.clone(), token, at_ms: now_ms() };
    if kind == FLAKY && fastrand::u64(..FAILS_IN) == 0 {
        witness.saw(finished);
        return Err(JobError::retryable("chaos", "this attempt fails on purpose"));
    }
    if kind != EFFECT {
        witness.saw(finished);
        return Ok(Outcome::Done);
    }
    let what = |answer| What::End { job: job.clone(), token, verb: "succeed".to_owned(), answer };
    let begun = witness.begins(&what(None));
    let ended = home.record_with_success(run, "").await;
    witness.saw(finished);
    let (outcome, answer) = match &ended {
        Ok(()) => (crate::record::Outcome::Ok, Some(EndAnswer::Accepted)),
        Err(StoreError::Fenced(_)) => (crate::record::Outcome::Failed, Some(EndAnswer::Fenced)),
        Err(_) => (crate::record::Outcome::Unknown, None),
    };
    witness.ended(&begun, outcome, what(answer));
    ended?;
    Ok(Outcome::Completed)
}

/// A receiver of events that cannot fail.
#[derive(Debug)]
struct WitnessSink {
    witness: Arc<Witness>,
    subscription: String,
}

#[async_trait]
impl Sink for WitnessSink {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        for event in events {
            let (subscription, event) = (self.subscription.clone(), event.id.to_string());
            self.witness.saw(Effect::Delivered { subscription, event });
        }
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}
