//! The relay's access to the log: publishers, positions and parked events. There is one writer, so positions are the commit order, and one
//! publisher at a time for a subscription: the whole log is one slot.

mod changes;
mod parked;
mod reader;
mod subscription;
mod work;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::event::{Aggregate, Begin, Changes, DueEvents, PageSize, Publisher, RelayError, Retried};
use milepost_core::event_work::EventWork;
use milepost_core::port::{LogReader, RelayStore, StoreResult, WakeStream};
use milepost_core::sql;

use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::store::SqliteStore;

#[async_trait]
impl RelayStore for SqliteStore {
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool> {
        let name = subscription.to_owned();
        self.write("subscribe", Hint::NONE, move |tx| {
            let made =
                tx.prepare_cached(sql!("relay/subscribe"))?.execute((name, now_ms(), begin == Begin::Now))?;
            Ok(made == 1)
        })
        .await
    }

    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool> {
        let (name, changes) = (subscription.to_owned(), changes.clone());
        self.write("record_changes", Hint::NONE, move |tx| changes::want(tx, &name, &changes)).await?;
        Ok(true)
    }

    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader> {
        Box::new(reader::FileReader::new(self.clone(), publisher))
    }

    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool> {
        let (id, until_ms) = (publisher.id, reader::lease_until_ms(publisher));
        self.write("renew", Hint::NONE, move |tx| {
            tx.prepare_cached(sql!("relay/renew"))?.execute((id.0.as_bytes(), until_ms))?;
            let renewed =
                tx.prepare_cached(sql!("relay/renew_publisher"))?.execute((id.0.as_bytes(), until_ms))?;
            Ok(renewed > 0)
        })
        .await
    }

    async fn leave(&self, publisher: &Publisher) -> StoreResult<()> {
        let id = publisher.id;
        // A publisher on standby can take over immediately.
        self.write("leave", Hint::READY, move |tx| {
            tx.prepare_cached(sql!("relay/give_back"))?.execute([id.0.as_bytes()])?;
            tx.prepare_cached(sql!("relay/leave"))?.execute([id.0.as_bytes()])?;
            Ok(())
        })
        .await
    }

    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()> {
        let (id, down) = (publisher.id, down.map(str::to_owned));
        self.write("report_sink", Hint::NONE, move |tx| {
            tx.prepare_cached(sql!("relay/report_sink"))?.execute((id.0.as_bytes(), down, now_ms()))?;
            Ok(())
        })
        .await
    }

    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()> {
        let action = AuditedAction::pause_subscription(subscription);
        let (name, why) = (subscription.to_owned(), why.to_owned());
        self.act("pause_subscription", Hint::NONE, action, move |tx| {
            match tx.prepare_cached(sql!("relay/pause"))?.execute((&name, why, now_ms()))? {
                0 => Err(Failure::Told(RelayError::NoSuchSubscription(name).into())),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn due(
        &self,
        publisher: &Publisher,
        aggregates_max: u32,
        size: PageSize,
    ) -> StoreResult<DueEvents> {
        let publisher = publisher.clone();
        self.read("due", move |conn| parked::due(conn, &publisher, aggregates_max, size)).await
    }

    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>> {
        let (subscription, retried) = (publisher.subscription.clone(), retried.to_vec());
        self.write("settle_parked", Hint::NONE, move |tx| parked::settle(tx, &subscription, retried)).await
    }

    async fn start_work(&self, publisher: &Publisher, works: &[EventWork]) -> StoreResult<Option<u64>> {
        self.start_event_work(publisher, works).await
    }

    fn log_wakes(&self) -> Box<dyn WakeStream> {
        Box::new(self.log_listener())
    }
}
