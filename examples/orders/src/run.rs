//! The whole example in one process: customers, a relay that is killed, its successor, and the consumers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use milepost::event::Subscription;
use milepost::event::relay_listing::Replay;
use milepost::{CancellationToken, RetryPolicy, StoreError, Timestamp};
use milepost_relay::consumer::{Counts, Handler, RunnerOptions};
use milepost_relay::publisher::{self, PublisherOptions};
use tokio::task::{JoinHandle, JoinSet};

use crate::broker::Broker;
use crate::clumsy::Clumsy;
use crate::shipping::{SHIPPING, Shipping};
use crate::shop::{Books, Shop};
use crate::statistics::{STATISTICS, Statistics};

/// The subscription, which stores the position of the relay.
const ORDERS: &str = "orders";
/// The number of orders, and of concurrent customers.
const PLACED: usize = 300;
const CUSTOMERS: usize = 6;
/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results of the example.
#[derive(Debug)]
pub struct Report {
    /// The results of the service and its consumers.
    pub books: Books,
    /// The number of events that were published again on purpose.
    pub replayed: u64,
    /// For each consumer, the number of deliveries of events that it had already processed.
    pub duplicates: Vec<(String, u64)>,
}

/// Lets customers place and pay orders while a relay publishes events and is killed, and while consumers fail. Then it publishes all events
/// again, and waits until all effects are complete.
///
/// # Errors
/// When a component cannot be used, or the effects are not complete in time.
pub async fn run(shop: &Shop, broker: &Broker) -> Result<Report> {
    let stop = CancellationToken::new();
    let first = relay(shop, broker, "first", &stop)?;
    let mut consumers = JoinSet::new();
    let counts = [
        consume(
            shop,
            broker,
            SHIPPING,
            Arc::new(Clumsy::new(Shipping(shop.clone()))),
            &stop,
            &mut consumers,
        )?,
        consume(
            shop,
            broker,
            STATISTICS,
            Arc::new(Clumsy::new(Statistics(shop.clone()))),
            &stop,
            &mut consumers,
        )?,
    ];

    buy(shop, PLACED / 2).await?;
    // Aborted without cleanup, as by SIGKILL: the second relay takes over when the lease of the first one expires.
    first.abort();
    let second = relay(shop, broker, "second", &stop)?;
    buy(shop, PLACED / 2).await?;
    until("all events are published", async || published(shop).await).await?;
    let replayed = shop.store().replay(ORDERS, &Replay::Since(Timestamp::UNIX_EPOCH)).await?;
    until("all events are published again", async || published(shop).await).await?;

    // NATS discards duplicates within its duplicate window; the file contains every line.
    let brought = 2 * PLACED as u64 + if matches!(broker, Broker::File(_)) { replayed } else { 0 };
    let taken_in = until("all events are processed", async || {
        let handled = counts.iter().all(|counts| counts.handled.load(Relaxed) >= brought);
        Ok(handled && shop.books().await?.balance())
    });
    if let Err(late) = taken_in.await {
        return Err(late.context(format!("{:?}", shop.books().await?)));
    }
    stop.cancel();
    second.await??;
    consumers.join_all().await;
    let duplicates = shop.store().consumers().await?;
    let duplicates = duplicates.into_iter().map(|of| (of.consumer.name, of.duplicates)).collect();
    Ok(Report { books: shop.books().await?, replayed, duplicates })
}

/// Runs customers who place orders and pay them.
async fn buy(shop: &Shop, orders: usize) -> Result<()> {
    let mut customers = JoinSet::new();
    for customer in 0..CUSTOMERS {
        let shop = shop.clone();
        customers.spawn(async move {
            for cents in (customer..orders).step_by(CUSTOMERS) {
                let order = shop.place(100 + cents as i64).await?;
                shop.pay(order).await?;
            }
            anyhow::Ok(())
        });
    }
    customers.join_all().await.into_iter().collect()
}

/// Runs a publisher within this process, as `milepost relay` does.
fn relay(
    shop: &Shop,
    broker: &Broker,
    label: &str,
    stop: &CancellationToken,
) -> Result<JoinHandle<Result<(), StoreError>>> {
    let options = PublisherOptions {
        lease: Duration::from_secs(1),
        ..PublisherOptions::new(Subscription::new(ORDERS), label)
    };
    let published = publisher::publish(shop.store(), broker.sink()?, options, Arc::default(), stop.clone());
    Ok(tokio::spawn(published))
}

/// Runs a consumer.
fn consume(
    shop: &Shop,
    broker: &Broker,
    name: &str,
    handler: Arc<dyn Handler>,
    stop: &CancellationToken,
    consumers: &mut JoinSet<()>,
) -> Result<Arc<Counts>> {
    let backoff = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
    let runner = broker
        .runner(name, handler)?
        .options(RunnerOptions { backoff, ..RunnerOptions::default() })
        .inbox(shop.store(), name);
    let counts = runner.counts();
    consumers.spawn(runner.run(stop.clone()));
    Ok(counts)
}

/// Returns whether the relay has published everything.
async fn published(shop: &Shop) -> Result<bool> {
    let all = shop.store().subscriptions().await?;
    let orders = all.iter().find(|subscription| subscription.name == ORDERS).context("no relay has run")?;
    Ok(orders.backlog == 0 && orders.parked_aggregates == 0)
}

async fn until(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !ask().await? {
        if began.elapsed() > PATIENCE {
            bail!("timed out after {PATIENCE:?} while waiting until {what}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
