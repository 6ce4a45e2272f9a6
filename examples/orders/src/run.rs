//! The whole of it in one process: customers, a relay that dies, another one, and the consumers.

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

/// The subscription, which keeps how far the relay is.
const ORDERS: &str = "orders";
/// How many orders are placed, and by how many customers at once.
const PLACED: usize = 300;
const CUSTOMERS: usize = 6;
/// How long all may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// What the service and its consumers have done.
    pub books: Books,
    /// How many events were published again on purpose.
    pub replayed: u64,
    /// How often an event came to each consumer that it had taken in already.
    pub duplicates: Vec<(String, u64)>,
}

/// Lets customers place and pay orders while a relay publishes and is killed, and consumers stumble; publishes everything again; and waits
/// until all have their effects.
///
/// # Errors
/// When anything cannot be used, or the effects are not there in time.
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
    // Without a word, as by SIGKILL: the second one takes over when its lease has run out.
    first.abort();
    let second = relay(shop, broker, "second", &stop)?;
    buy(shop, PLACED / 2).await?;
    until("all is published", async || published(shop).await).await?;
    let replayed = shop.store().replay(ORDERS, &Replay::Since(Timestamp::UNIX_EPOCH)).await?;
    until("all is published again", async || published(shop).await).await?;

    // NATS knows within its duplicate window what it has; a file takes every line.
    let brought = 2 * PLACED as u64 + if matches!(broker, Broker::File(_)) { replayed } else { 0 };
    let taken_in = until("all is taken in", async || {
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

/// Customers who place orders and pay them.
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

/// What `milepost relay` is, within this process.
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

/// Whether the relay has gone past everything.
async fn published(shop: &Shop) -> Result<bool> {
    let all = shop.store().subscriptions().await?;
    let orders = all.iter().find(|subscription| subscription.name == ORDERS).context("no relay has run")?;
    Ok(orders.backlog == 0 && orders.parked_aggregates == 0)
}

async fn until(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !ask().await? {
        if began.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} in vain until {what}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
