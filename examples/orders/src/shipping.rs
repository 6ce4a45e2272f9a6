//! The shipping consumer, which packs paid orders. It needs the events of an order in order, each once: the inbox's `receive`.

use anyhow::{Result, ensure};
use async_trait::async_trait;
use milepost::event::{Aggregate, Event};
use milepost::inbox::Received;
use milepost_relay::consumer::Handler;

use crate::Cause;
use crate::shop::Shop;

/// The name of its inbox.
pub const SHIPPING: &str = "shipping";

const ARRIVE: &str = "insert into shipments (order_id) values ($1)";
const PACK: &str = "update shipments set packed = true where order_id = $1 and not packed";

/// The consumer.
#[derive(Debug)]
pub struct Shipping(pub Shop);

#[async_trait]
impl Handler for Shipping {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        match &self.0 {
            Shop::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                let received = milepost_postgres::receive(&mut tx, SHIPPING, event).await?;
                if let Received::Apply { .. } = received {
                    on_postgres::ship(&mut tx, event).await?;
                }
                if received.more() {
                    on_postgres::ship_kept(&mut tx, &event.aggregate).await?;
                }
                tx.commit().await?;
            }
            Shop::Sqlite(store) => {
                let event = event.clone();
                let take_in = move |tx: &rusqlite::Transaction<'_>| {
                    let received = milepost_sqlite::receive(tx, SHIPPING, &event)?;
                    if let Received::Apply { .. } = received {
                        on_sqlite::ship(tx, &event)?;
                    }
                    if received.more() { on_sqlite::ship_kept(tx, &event.aggregate) } else { Ok(()) }
                };
                store.transaction(take_in).await?;
            }
        }
        Ok(())
    }

    /// Processes events that arrived too early, when their turn has come without another message.
    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        match &self.0 {
            Shop::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                on_postgres::ship_kept(&mut tx, aggregate).await?;
                tx.commit().await?;
            }
            Shop::Sqlite(store) => {
                let aggregate = aggregate.clone();
                store.transaction(move |tx| on_sqlite::ship_kept(tx, &aggregate)).await?;
            }
        }
        Ok(())
    }
}

/// Returns the statement for an event; `None` if the event is not relevant.
fn change(event: &Event) -> Option<&'static str> {
    match event.event_type.as_str() {
        "order.placed" => Some(ARRIVE),
        "order.paid" => Some(PACK),
        _ => None,
    }
}

/// Checks that the event changed one row. A duplicate, or an event before its predecessors, would change none or the wrong one.
fn check(event: &Event, rows: u64) -> Result<()> {
    ensure!(rows == 1, "{} of {} is out of order", event.event_type, event.aggregate);
    Ok(())
}

mod on_postgres {
    use super::{Aggregate, Event, Result, SHIPPING, change, check};

    pub(super) async fn ship(tx: &mut sqlx::PgConnection, event: &Event) -> Result<()> {
        let Some(change) = change(event) else { return Ok(()) };
        let changed = sqlx::query(change).bind(&event.aggregate.id).execute(tx).await?;
        check(event, changed.rows_affected())
    }

    pub(super) async fn ship_kept(tx: &mut sqlx::PgConnection, aggregate: &Aggregate) -> Result<()> {
        while let Some(event) = milepost_postgres::next_parked(tx, SHIPPING, aggregate).await? {
            ship(tx, &event).await?;
        }
        Ok(())
    }
}

mod on_sqlite {
    use rusqlite::Transaction;

    use super::{Aggregate, Event, Result, SHIPPING, change, check};

    pub(super) fn ship(tx: &Transaction<'_>, event: &Event) -> Result<()> {
        let Some(change) = change(event) else { return Ok(()) };
        let changed = tx.execute(change, [&event.aggregate.id])?;
        check(event, changed as u64)
    }

    pub(super) fn ship_kept(tx: &Transaction<'_>, aggregate: &Aggregate) -> Result<()> {
        while let Some(event) = milepost_sqlite::next_parked(tx, SHIPPING, aggregate)? {
            ship(tx, &event)?;
        }
        Ok(())
    }
}
