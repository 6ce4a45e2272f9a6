//! Conditions that pause the runs of a bulk job in favour of other work.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::check_probe;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::Node;
use super::super::fault::Faults;
use super::super::humane::Humane;
use super::Dialect;

/// Throttles that exist only on PostgreSQL servers.
const OF_SERVERS: [&str; 3] = ["replica_lag", "lock_waits", "oldest_snapshot"];

/// Pauses runs while a limit is exceeded. A condition that cannot be evaluated pauses them, too.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ThrottleEntry {
    /// The maximum lag of the slowest replica (PostgreSQL).
    pub(crate) replica_lag: Option<Humane>,
    /// The maximum number of lock waits in the database (PostgreSQL).
    pub(crate) lock_waits: Option<u32>,
    /// The maximum age of the oldest transaction that holds back vacuum (PostgreSQL).
    pub(crate) oldest_snapshot: Option<Humane>,
    /// A query that returns one value: true (1) to continue, false (0) to pause, or a text with the reason to pause.
    pub(crate) sql: Option<String>,
    /// A URL that is requested with GET: 2xx means continue, anything else pause.
    #[schemars(extend("format" = "milepost-url"))]
    pub(crate) http: Option<String>,
}

pub(super) fn check(throttle: Option<&Node>, dialect: Dialect, faults: &mut Faults) {
    let Some(throttle) = throttle.filter(|throttle| throttle.is_table()) else { return };
    if throttle.entries().is_empty() {
        let remedy = "write for example throttle = { lock_waits = 10 }, or remove it";
        faults.add(throttle.span.start, "the throttle has no condition", remedy);
    }
    if let Some((node, sql)) = throttle.get("sql").and_then(|node| Some((node, node.text()?)))
        && let Err(why) = check_probe(sql, dialect)
    {
        let remedy = "write a query that returns true or 1 to continue, false or 0 to pause, or a text";
        faults.add(node.span.start, InvalidBulk::Throttle(why).to_string(), remedy);
    }
    let on_file = throttle
        .entries()
        .iter()
        .filter(|entry| dialect == Dialect::Sqlite && OF_SERVERS.contains(&entry.key.as_str()));
    for entry in on_file {
        let what = format!("{} needs a PostgreSQL server, but the store is a SQLite file", entry.key);
        faults.add(entry.at, what, "remove it; sql and http work here");
    }
}
