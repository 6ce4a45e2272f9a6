//! A consumer of emitted events, whose transactions are calls of the store.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use milepost_chaos::load::setup::CONSUMER;
use milepost_core::error::StoreError;
use milepost_core::event::Event;
use milepost_core::inbox::Received;
use milepost_core::port::StoreResult;
use milepost_relay::sink::{Delivery, Sink, SinkDown};
use milepost_testkit::home::SqliteHome;

/// Takes events in, each with its effect in one transaction.
pub(crate) struct Consumer(pub(crate) Arc<SqliteHome>);

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Consumer")
    }
}

#[async_trait]
impl Sink for Consumer {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        for event in events {
            self.take_in(event.clone()).await.map_err(|error| SinkDown {
                place: CONSUMER.to_owned(),
                why: error.to_string(),
                retry_after: None,
                for_good: false,
            })?;
        }
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}

impl Consumer {
    async fn take_in(&self, event: Event) -> StoreResult<()> {
        let take_in = move |tx: &rusqlite::Transaction<'_>| {
            let effect = |event: &Event| {
                let insert = "INSERT INTO inbox_effect (consumer, aggregate_id, seq) VALUES (?1, ?2, ?3)";
                tx.execute(insert, (CONSUMER, &event.aggregate.id, event.sequence)).map(drop).map_err(failed)
            };
            let received = milepost_sqlite::receive(tx, CONSUMER, &event)?;
            if let Received::Apply { .. } = received {
                effect(&event)?;
            }
            if received.more() {
                while let Some(next) = milepost_sqlite::next_parked(tx, CONSUMER, &event.aggregate)? {
                    effect(&next)?;
                }
            }
            Ok(())
        };
        self.0.transact("take_in", take_in).await
    }
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::Database { verb: "take_in", cause: error.into() }
}
