//! A probe of the user's, in SQL.

use async_trait::async_trait;
use milepost_core::port::Throttle;
use rusqlite::types::ValueRef;

use crate::store::SqliteStore;

/// Holds bulk jobs as a query says: it answers one value, 1 (true) to go on, 0 (false) to hold, or a text that says why
/// to hold.
#[derive(Clone, Debug)]
pub struct SqlProbe {
    store: SqliteStore,
    sql: String,
}

impl SqlProbe {
    /// Asks this of the store's file.
    #[must_use]
    pub fn new(store: &SqliteStore, sql: &str) -> Self {
        Self { store: store.clone(), sql: sql.to_owned() }
    }
}

#[async_trait]
impl Throttle for SqlProbe {
    async fn holds(&self) -> Option<String> {
        let sql = self.sql.clone();
        let asked = self.store.read("throttle", move |conn| {
            let mut statement = conn.prepare_cached(&sql)?;
            let mut rows = statement.query(())?;
            let Some(row) = rows.next()? else {
                return Ok(Some("it answered no row; let it answer 1, 0 or a text".to_owned()));
            };
            Ok(match row.get_ref(0)? {
                ValueRef::Integer(0) => Some("it answered 0".to_owned()),
                ValueRef::Integer(_) => None,
                ValueRef::Text(why) => Some(String::from_utf8_lossy(why).into_owned()),
                _ => Some("its answer is none; let it answer 1, 0 or a text".to_owned()),
            })
        });
        let why = asked.await.unwrap_or_else(|error| Some(format!("it cannot be asked: {}", error.chain())));
        why.map(|why| format!("sql probe: {why}"))
    }
}
