//! A worker process: runs jobs and publishes events.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use futures::future::try_join_all;
use milepost::{Context, JobError, Outcome, RetryPolicy, Worker};
use milepost_core::error::StoreError;
use milepost_core::event::{Begin, Event, Subscription};
use milepost_postgres::WakeMode;
use milepost_redis::{Redis, RedisOptions};
use milepost_relay::publisher::{Destination, PublisherOptions, PublisherStats, publish};
use milepost_relay::sink::{Delivery, Sink, SinkDown};
use milepost_testkit::home::Home;
use tokio_util::sync::CancellationToken;

use super::setup::{self, CHANGES, EFFECT, FLAKY, PLAIN, QUEUE, RATED, STARTED, STARTS, SUBSCRIPTION};
use super::{BEGIN_AGAIN_AFTER, Pace, ProcessArgs, open, until_parent_ends};
use crate::broker;
use crate::record::{Effect, EndAnswer, What};
use crate::witness::Witness;

/// A job in this number fails, if its kind fails at all.
const FAILS_IN: u64 = 3;
/// A repeated attempt in this number takes long.
const LONG_IN: u64 = 6;
/// A call of the sink in this number fails.
const SINK_FAILS_IN: u64 = 50;

/// Runs until the parent closes standard input.
///
/// # Errors
/// When the worker cannot register, or the witness cannot write.
pub async fn run(args: ProcessArgs) -> Result<()> {
    let home = open(&args.store, WakeMode::Listen).await;
    let witness = Arc::new(args.witness()?);
    let services = Services { redis: args.redis, broker: args.broker };
    serve(home, witness, Pace::REAL, &services, until_parent_ends()).await
}

/// The addresses of servers beside the store.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// A Redis that helps workers.
    pub redis: Option<String>,
    /// A broker to which events are published, too.
    pub broker: Option<String>,
}

/// Runs jobs and publishes events until it is asked to stop.
///
/// # Errors
/// When the worker cannot register, or a publisher gives up.
pub async fn serve(
    home: Arc<dyn Home>,
    witness: Arc<Witness>,
    pace: Pace,
    services: &Services,
    stop: CancellationToken,
) -> Result<()> {
    let worker = start(&home, &witness, pace, services).await?;
    let emitted = Subscription::new(SUBSCRIPTION);
    let changes = Subscription::new(CHANGES).changes(setup::changes());
    let mut publishers: Vec<(Subscription, Destination)> = Vec::new();
    for subscription in [emitted, changes] {
        let (witness, name) = (witness.clone(), subscription.name.clone());
        let sink: Arc<dyn Sink> = Arc::new(WitnessSink { witness, subscription: name });
        publishers.push((subscription, sink.into()));
    }
    if let Some(url) = &services.broker {
        publishers.push((Subscription::new(broker::SUBSCRIPTION), broker::open(url)?.into()));
    }
    let work = Arc::new(setup::work(pace.attempt_max));
    publishers.push((Subscription::new(STARTS), Destination::Work(work)));
    let publishing = publishers.into_iter().map(|(subscription, destination)| {
        let options = PublisherOptions {
            lease: pace.lease,
            poll_interval: pace.poll_interval,
            begin: Begin::Beginning,
            ..PublisherOptions::new(subscription, witness.name().to_owned())
        };
        publish(home.store(), destination, options, Arc::new(PublisherStats::default()), stop.clone())
    });
    try_join_all(publishing).await?;
    worker.shutdown().await;
    Ok(())
}

/// Starts a worker.
async fn start(
    home: &Arc<dyn Home>,
    witness: &Arc<Witness>,
    pace: Pace,
    services: &Services,
) -> Result<Worker> {
    let soon = RetryPolicy::fixed(Duration::from_millis(100));
    let mut builder = Worker::builder(home.store()).queues([QUEUE]).options(|options| {
        witness.name().clone_into(&mut options.name);
        options.lease = pace.lease;
        options.poll_interval = pace.poll_interval;
        options.concurrency = 8;
    });
    for kind in [EFFECT, PLAIN, FLAKY, RATED, STARTED] {
        let (home, witness) = (home.clone(), witness.clone());
        builder = builder.handle_kind(kind, soon, move |context| {
            let (home, witness) = (home.clone(), witness.clone());
            async move { handle(kind, &context, home.as_ref(), &witness, pace).await }
        });
    }
    let mut builder = builder.bulk(setup::bulk(home.as_ref(), witness.clone(), pace)?);
    if let Some(url) = &services.redis {
        builder = builder.coordination(Arc::new(Redis::start(url, RedisOptions::default())?));
    }
    // A fault can hit the begin of a worker, which a supervisor would start again.
    loop {
        match builder.clone().start().await {
            Err(error) if error.is_transient() => tokio::time::sleep(BEGIN_AGAIN_AFTER).await,
            started => return Ok(started?),
        }
    }
}

async fn handle(
    kind: &str,
    context: &Context,
    home: &dyn Home,
    witness: &Witness,
    pace: Pace,
) -> Result<Outcome, JobError> {
    let run = context.run();
    let (job, token) = (run.job.to_string(), u64::from(run.token.0.unsigned_abs()));
    witness.saw(Effect::Began { job: job.clone(), token, at_ms: witness.now_ms() });
    let takes_long = context.attempt() > 1 && fastrand::u64(..LONG_IN) == 0;
    let most_ms = if takes_long { pace.repeated_ms_max } else { pace.handler_ms_max };
    tokio::time::sleep(Duration::from_millis(fastrand::u64(..most_ms))).await;
    let finished = Effect::Finished { job: job.clone(), token, at_ms: witness.now_ms() };
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

/// A receiver of events that fails at times, and then has received nothing.
#[derive(Debug)]
struct WitnessSink {
    witness: Arc<Witness>,
    subscription: String,
}

#[async_trait]
impl Sink for WitnessSink {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        if fastrand::u64(..SINK_FAILS_IN) == 0 {
            let (place, why) = (self.subscription.clone(), "it fails on purpose".to_owned());
            return Err(SinkDown { place, why, retry_after: None, for_good: false });
        }
        for event in events {
            let (subscription, event) = (self.subscription.clone(), event.id.to_string());
            self.witness.saw(Effect::Delivered { subscription, event });
        }
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}
