//! The statistics consumer, which needs each event once, in any order: the inbox's `once`.

use async_trait::async_trait;
use milepost::event::Event;
use milepost_relay::consumer::Handler;

use crate::Cause;
use crate::shop::Shop;

/// The name of its inbox.
pub const STATISTICS: &str = "statistics";

const ADD: &str = "update statistics set placed = placed + $1, cents = cents + $2";

/// The consumer.
#[derive(Debug)]
pub struct Statistics(pub Shop);

#[async_trait]
impl Handler for Statistics {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        let (placed, cents) = match event.event_type.as_str() {
            "order.placed" => (1, 0),
            "order.paid" => (0, cents(event)?),
            _ => return Ok(()),
        };
        match &self.0 {
            Shop::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                if milepost_postgres::once(&mut tx, STATISTICS, event.id).await? {
                    sqlx::query(ADD).bind(placed).bind(cents).execute(&mut *tx).await?;
                }
                tx.commit().await?;
            }
            Shop::Sqlite(store) => {
                let id = event.id;
                let add = move |tx: &rusqlite::Transaction<'_>| {
                    if milepost_sqlite::once(tx, STATISTICS, id)? {
                        tx.execute(ADD, [placed, cents])?;
                    }
                    anyhow::Ok(())
                };
                store.transaction(add).await?;
            }
        }
        Ok(())
    }
}

fn cents(event: &Event) -> Result<i64, Cause> {
    let payload: serde_json::Value = serde_json::from_str(event.payload.get())?;
    payload["cents"].as_i64().ok_or_else(|| "its payload has no cents".into())
}
