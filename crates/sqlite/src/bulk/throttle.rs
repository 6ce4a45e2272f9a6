//! A throttle probe written in SQL.

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Dialect, check_probe};
use milepost_core::port::{StoreResult, Throttle};
use rusqlite::types::ValueRef;

use crate::store::SqliteStore;

/// Throttles bulk jobs by a query. The query returns one value: 1 (true) to continue, 0 (false) to pause, or a text with the reason for the
/// pause.
#[derive(Clone, Debug)]
pub struct SqlProbe {
    store: SqliteStore,
    sql: String,
}

impl SqlProbe {
    /// Creates a probe that runs this query on the store's file.
    #[must_use]
    pub fn new(store: &SqliteStore, sql: &str) -> Self {
        Self { store: store.clone(), sql: sql.to_owned() }
    }
}

#[async_trait]
impl Throttle for SqlProbe {
    async fn check(&self) -> StoreResult<()> {
        check_probe(&self.sql, Dialect::Sqlite).map_err(InvalidBulk::Throttle)?;
        let sql = self.sql.clone();
        let prepared = self.store.read("throttle", move |conn| {
            Ok(conn.prepare(&sql).map(drop).map_err(|error| error.to_string()))
        });
        Ok(prepared.await?.map_err(|why| InvalidBulk::NotPrepared { part: "throttle", why })?)
    }

    async fn holds(&self) -> Option<String> {
        let sql = self.sql.clone();
        let asked = self.store.read("throttle", move |conn| {
            let mut statement = conn.prepare_cached(&sql)?;
            let mut rows = statement.query(())?;
            let Some(row) = rows.next()? else {
                return Ok(Some("it returned no row; it must return 1, 0 or a text".to_owned()));
            };
            Ok(match row.get_ref(0)? {
                ValueRef::Integer(0) => Some("it returned 0".to_owned()),
                ValueRef::Integer(_) => None,
                ValueRef::Text(why) => Some(String::from_utf8_lossy(why).into_owned()),
                _ => Some("it returned a value of another type; it must return 1, 0 or a text".to_owned()),
            })
        });
        let why = asked.await.unwrap_or_else(|error| Some(format!("it failed: {}", error.chain())));
        why.map(|why| format!("sql probe: {why}"))
    }
}
