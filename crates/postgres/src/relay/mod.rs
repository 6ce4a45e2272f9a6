//! The relay's side of the event log: publishers, their positions, and parked events.

mod changes;
mod error;
mod outcome;
mod parked;
mod reader;
mod slot;
mod subscription;
mod work;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::event::{Aggregate, Begin, Changes, DueEvents, PageSize, Publisher, RelayError, Retried};
use milepost_core::event_work::EventWork;
use milepost_core::port::{LogReader, RelayStore, StoreResult, WakeStream};
use milepost_core::sql;

use crate::session::Repeatable;
use crate::store::PostgresStore;

#[async_trait]
impl RelayStore for PostgresStore {
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool> {
        let query =
            sqlx::query(sql!("relay/subscribe")).bind(subscription.to_owned()).bind(begin == Begin::Now);
        let row = self.inner.hot.row(query).await;
        let is_new = row.and_then(crate::row::value).map_err(|e| self.fail("subscribe", e))?;
        if begin == Begin::Now {
            let query = sqlx::query(sql!("relay/begin_now")).bind(subscription.to_owned());
            self.inner.hot.execute(query).await.map_err(|e| self.fail("subscribe", e))?;
        }
        Ok(is_new)
    }

    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool> {
        let recorded = self.want_changes(subscription, changes).await;
        recorded.map_err(|e| error::relay_error(&self.inner.place, "record_changes", subscription, e))
    }

    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader> {
        Box::new(reader::SlotReader::new(self.clone(), publisher))
    }

    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool> {
        let query =
            sqlx::query(sql!("relay/renew_publisher")).bind(publisher.id.0).bind(reader::lease_ms(publisher));
        let renewed = self.inner.hot.execute(query).await.map_err(|e| self.fail("renew", e))?;
        Ok(renewed > 0)
    }

    async fn leave(&self, publisher: &Publisher) -> StoreResult<()> {
        let query = sqlx::query(sql!("relay/leave")).bind(publisher.id.0);
        self.inner.hot.execute(query).await.map(drop).map_err(|e| self.fail("leave", e))
    }

    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()> {
        let query = sqlx::query(sql!("relay/report_sink")).bind(publisher.id.0).bind(down.map(str::to_owned));
        self.inner.hot.execute(query).await.map(drop).map_err(|e| self.fail("report_sink", e))
    }

    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()> {
        let query = sqlx::query(sql!("relay/pause")).bind(subscription.to_owned()).bind(why.to_owned());
        let action = AuditedAction::pause_subscription(subscription);
        let query = Repeatable::of(query);
        let paused = self.act(&self.inner.hot, &action, async |session| session.execute(query).await).await;
        match paused.map_err(|e| self.fail("pause_subscription", e))? {
            0 => Err(RelayError::NoSuchSubscription(subscription.to_owned()).into()),
            _ => Ok(()),
        }
    }

    async fn due(
        &self,
        publisher: &Publisher,
        aggregates_max: u32,
        size: PageSize,
    ) -> StoreResult<DueEvents> {
        self.due_events(publisher, aggregates_max, size).await.map_err(|e| self.fail("due", e))
    }

    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>> {
        self.settle_each(publisher, retried).await.map_err(|e| self.fail("settle_parked", e))
    }

    async fn start_work(&self, publisher: &Publisher, works: &[EventWork]) -> StoreResult<Option<u64>> {
        self.start_event_work(publisher, works).await
    }

    fn log_wakes(&self) -> Box<dyn WakeStream> {
        crate::wake::subscribe_to_log(self)
    }
}
