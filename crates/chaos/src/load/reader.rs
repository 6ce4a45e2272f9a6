//! A reader process: follows the stream of state changes, and takes emitted events in as a consumer.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use milepost_core::error::StoreError;
use milepost_core::event::{Begin, Event, Subscription};
use milepost_core::feed::Change;
use milepost_core::port::Store;
use milepost_postgres::WakeMode;
use milepost_relay::publisher::{PublisherOptions, PublisherStats, publish};
use milepost_relay::sink::{Delivery, Sink, SinkDown};
use milepost_testkit::inbox::Desk;
use tokio_util::sync::CancellationToken;

use super::setup::CONSUMER;
use super::{ANSWER_TIMEOUT, Pace, ProcessArgs, open, until_parent_ends};
use crate::record::Effect;
use crate::witness::Witness;

/// The number of changes of a page.
const PAGE: u32 = 500;

/// Runs until the parent closes standard input.
///
/// # Errors
/// When the witness cannot write.
pub async fn run(args: ProcessArgs) -> Result<()> {
    // A transaction whose database does not answer panics; `ConsumerSink` repeats it.
    std::panic::set_hook(Box::new(|_| {}));
    let home = open(&args.store, WakeMode::Listen).await;
    let witness = args.witness()?;
    // A fault can hit the begin of the reader.
    let desk = loop {
        let home = home.clone();
        if let Ok(desk) = tokio::spawn(async move { home.desk().await }).await {
            break desk;
        }
    };
    read(home.store(), &witness, Arc::new(ConsumerSink(desk)), Pace::REAL, until_parent_ends()).await
}

/// Follows the stream, and gives emitted events to a consumer, until it is asked to stop.
///
/// # Errors
/// When the publisher of the consumer gives up.
pub async fn read(
    store: Arc<dyn Store>,
    witness: &Witness,
    consumer: Arc<dyn Sink>,
    pace: Pace,
    stop: CancellationToken,
) -> Result<()> {
    let options = PublisherOptions {
        lease: pace.lease,
        poll_interval: pace.poll_interval,
        begin: Begin::Beginning,
        ..PublisherOptions::new(Subscription::new(CONSUMER), witness.name().to_owned())
    };
    let stats = Arc::new(PublisherStats::default());
    let publishing = publish(store.clone(), consumer, options, stats, stop.clone());
    let (_, published) = tokio::join!(follow(store.as_ref(), witness, pace, &stop), publishing);
    Ok(published?)
}

/// Records every change of a job that the stream returns.
async fn follow(store: &dyn Store, witness: &Witness, pace: Pace, stop: &CancellationToken) {
    let watcher = witness.name();
    let mut position = None;
    while !stop.is_cancelled() {
        tokio::time::sleep(pace.stream_pause).await;
        let Some(after) = &position else {
            position = store.feed_end().await.ok();
            continue;
        };
        match store.feed(after, None, PAGE).await {
            Ok(page) => {
                for (_, change) in page.changes {
                    if let Change::Job(change) = change {
                        witness.saw(Effect::Watched { watcher: watcher.to_owned(), pos: change.pos });
                    }
                }
                position = Some(page.end);
            }
            // The position is lost: a watcher reads the current state, and begins with new changes.
            Err(StoreError::Feed(_)) => {
                witness.saw(Effect::Reset { watcher: watcher.to_owned() });
                position = None;
            }
            Err(_) => {}
        }
    }
}

impl std::fmt::Debug for ConsumerSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConsumerSink")
    }
}

/// Takes events in, each with its effect in one transaction.
struct ConsumerSink(Desk);

#[async_trait]
impl Sink for ConsumerSink {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        for event in events {
            let (desk, event) = (self.0.clone(), event.clone());
            // The desk panics if its database does not answer; then nothing of the transaction is committed, or all of it.
            let mut taken = tokio::spawn(async move { desk.take(CONSUMER, &event).await });
            let Ok(taken) = tokio::time::timeout(ANSWER_TIMEOUT, &mut taken).await else {
                taken.abort();
                return Err(down("no answer".to_owned()));
            };
            taken.map_err(|panic| down(panic.to_string()))?;
        }
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}

fn down(why: String) -> SinkDown {
    SinkDown { place: CONSUMER.to_owned(), why, retry_after: None, for_good: false }
}
