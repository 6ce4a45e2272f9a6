//! What holds the runs of a bulk job so that others get their turn.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::Node;
use super::super::fault::Faults;
use super::super::humane::Humane;
use super::Dialect;

/// What only a server has.
const OF_SERVERS: [&str; 3] = ["replica_lag", "lock_waits", "oldest_snapshot"];

/// Holds runs while there is too much of something. What cannot be found out holds, too.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ThrottleEntry {
    /// How far the slowest replica may be behind (PostgreSQL).
    pub(crate) replica_lag: Option<Humane>,
    /// How many locks may be waited for in the database (PostgreSQL).
    pub(crate) lock_waits: Option<u32>,
    /// How long the oldest transaction that holds back vacuum may be open (PostgreSQL).
    pub(crate) oldest_snapshot: Option<Humane>,
    /// A query that answers one value: true (1) to go on, false (0) to hold, or a text that says why to hold.
    pub(crate) sql: Option<String>,
    /// A URL that is asked with GET: 2xx is to go on, anything else to hold.
    #[schemars(extend("format" = "milepost-url"))]
    pub(crate) http: Option<String>,
}

pub(super) fn check(throttle: Option<&Node>, dialect: Dialect, faults: &mut Faults) {
    let Some(throttle) = throttle.filter(|throttle| throttle.is_table()) else { return };
    if throttle.entries().is_empty() {
        let remedy = "write for instance throttle = { lock_waits = 10 }, or leave it out";
        faults.add(throttle.span.start, "the throttle says nothing", remedy);
    }
    let on_file = throttle
        .entries()
        .iter()
        .filter(|entry| dialect == Dialect::Sqlite && OF_SERVERS.contains(&entry.key.as_str()));
    for entry in on_file {
        let what = format!("{} is asked of a PostgreSQL server, and the store is a SQLite file", entry.key);
        faults.add(entry.at, what, "take it out; sql and http can be asked here");
    }
}
