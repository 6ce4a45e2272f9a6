//! The order service, which commits its rows and its events together.

use std::sync::Arc;

use anyhow::{Context, Result};
use milepost::Store;
use milepost::event::{Aggregate, NewEvent};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use serde_json::json;

const PLACE: &str = "insert into orders (cents) values ($1) returning id";
const PAY: &str =
    "insert into payments (order_id, cents) select id, cents from orders where id = $1 returning cents";
const BOOKS: &str = "select (select count(*) from orders), (select count(*) from payments),
    (select cast(coalesce(sum(cents), 0) as bigint) from payments), (select count(*) from shipments),
    (select count(*) from shipments where packed), placed, cents from statistics";

/// The shop's database, which also contains the log of its events. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Shop {
    /// A SQLite file on this machine.
    Sqlite(SqliteStore),
    /// A PostgreSQL server.
    Postgres(PostgresStore),
}

/// The results of the service and its consumers, read in one statement.
#[derive(Debug)]
pub struct Books {
    /// The number of orders, the number of payments, and the sum of payments.
    pub orders: (i64, i64, i64),
    /// The number of orders that shipping has received, and that of orders it has packed.
    pub shipping: (i64, i64),
    /// The number of orders that statistics has counted, and the sum of their payments.
    pub statistics: (i64, i64),
}

impl Books {
    /// Returns whether every event has had its effect exactly once at every consumer.
    #[must_use]
    pub fn balance(&self) -> bool {
        let (placed, paid, cents) = self.orders;
        self.shipping == (placed, paid) && self.statistics == (placed, cents)
    }
}

impl Shop {
    /// Opens the database at `sqlite:PATH` or `postgres://…`, and creates missing tables.
    ///
    /// # Errors
    /// When the address has neither form, or the database cannot be used.
    pub async fn open(address: &str) -> Result<Self> {
        if address.starts_with("postgres") {
            let store = PostgresStore::connect(address, PostgresOptions::default()).await?;
            store.migrate().await?;
            sqlx::raw_sql(include_str!("../tables.postgres.sql")).execute(store.pool()).await?;
            return Ok(Self::Postgres(store));
        }
        let path = address.strip_prefix("sqlite:");
        let path = path.context("give the store as sqlite:PATH or as postgres://USER@HOST/DATABASE")?;
        let store = SqliteStore::open(path, SqliteOptions::default())?;
        store.migrate().await?;
        let tables = include_str!("../tables.sqlite.sql");
        store.transaction(|tx| tx.execute_batch(tables).map_err(anyhow::Error::from)).await?;
        Ok(Self::Sqlite(store))
    }

    /// Returns the store of its events and inboxes.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// Places an order; returns its number.
    ///
    /// # Errors
    /// When the database rejects it; then neither an order nor an event is stored.
    pub async fn place(&self, cents: i64) -> Result<i64> {
        match self {
            Self::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                let order = sqlx::query_scalar(PLACE).bind(cents).fetch_one(&mut *tx).await?;
                milepost_postgres::emit(&mut tx, &event(order, "order.placed", cents)?).await?;
                tx.commit().await?;
                Ok(order)
            }
            Self::Sqlite(store) => {
                let place = move |tx: &rusqlite::Transaction<'_>| {
                    let order = tx.query_row(PLACE, [cents], |row| row.get(0))?;
                    milepost_sqlite::emit(tx, &event(order, "order.placed", cents)?)?;
                    anyhow::Ok(order)
                };
                store.transaction(place).await
            }
        }
    }

    /// Pays an order.
    ///
    /// # Errors
    /// When the database rejects it, or the order is paid already.
    pub async fn pay(&self, order: i64) -> Result<()> {
        match self {
            Self::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                let cents = sqlx::query_scalar(PAY).bind(order).fetch_one(&mut *tx).await?;
                milepost_postgres::emit(&mut tx, &event(order, "order.paid", cents)?).await?;
                Ok(tx.commit().await?)
            }
            Self::Sqlite(store) => {
                let pay = move |tx: &rusqlite::Transaction<'_>| {
                    let cents = tx.query_row(PAY, [order], |row| row.get(0))?;
                    milepost_sqlite::emit(tx, &event(order, "order.paid", cents)?)?;
                    anyhow::Ok(())
                };
                store.transaction(pay).await
            }
        }
    }

    /// Reads the results of the service and its consumers.
    ///
    /// # Errors
    /// When the database does not respond.
    pub async fn books(&self) -> Result<Books> {
        let (a, b, c, d, e, f, g) = match self {
            Self::Postgres(store) => sqlx::query_as(BOOKS).fetch_one(store.pool()).await?,
            Self::Sqlite(store) => {
                let read = |tx: &rusqlite::Transaction<'_>| {
                    anyhow::Ok(tx.query_row(BOOKS, (), |row| row.try_into())?)
                };
                store.transaction(read).await?
            }
        };
        Ok(Books { orders: (a, b, c), shipping: (d, e), statistics: (f, g) })
    }
}

/// Creates an event of an order. The aggregate is the order: its events are delivered in order, and independently of those of other orders.
fn event(order: i64, event_type: &str, cents: i64) -> Result<NewEvent> {
    let aggregate = Aggregate::new("order", order.to_string());
    Ok(NewEvent::new(aggregate, event_type, &json!({ "cents": cents }))?)
}
