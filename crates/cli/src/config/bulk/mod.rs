//! `[bulk.NAME]`: bulk jobs, each with its targets and the operation on them.

mod check;
mod definition;
mod emit;
mod schedule;
mod throttle;
mod window;

use std::collections::BTreeMap;

use milepost::bulk::ColumnType;
use milepost_core::bulk::sql::Dialect;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) use self::check::{Surroundings, check};
pub(crate) use self::definition::Doing;
use self::emit::Emit;
use self::schedule::BulkSchedule;
pub(crate) use self::throttle::ThrottleEntry;
use self::window::WindowEntry;
use super::document::Node;
use super::exec::Exec;
use super::fault::Lines;
use super::http::Http;
use super::humane::Humane;

/// Processes many targets in chunks, and can be stopped and resumed (docs/BULK.md). It has exactly one of
/// `apply`, `enqueue`, `emit`, `http` and `exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkEntry {
    /// A label for filters of lists: the kind of result, such as `notification rows`.
    #[serde(default)]
    r#type: Option<String>,
    /// A label for filters of lists: the purpose, such as `popular content`.
    #[serde(default)]
    category: Option<String>,
    /// The group. Only one bulk job of a group runs at a time. The default is its name.
    #[serde(default)]
    group: Option<String>,
    /// The queue of its runs. The default is `bulk`.
    #[serde(default)]
    queue: Option<String>,
    /// The priority within the group, from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    priority: Option<u8>,
    /// The maximum number of attempts of a run; a crash of its worker uses one. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_attempts: Option<u32>,
    /// The name of the database (`[database.NAME]` in this file) with its targets and everything else that its SQL uses. The default is
    /// the store's database.
    #[serde(default)]
    database: Option<String>,
    /// The query for the targets: `select … where KEY > :cursor order by KEY limit :limit`.
    #[serde(default)]
    source: Option<String>,
    /// The key columns by which the source is ordered.
    #[serde(default)]
    #[schemars(length(min = 1))]
    key: Option<Vec<String>>,
    /// Instead of `source` and `key`: the columns of the file with which each run is started (`milepost bulk start --from`),
    /// and their types, such as `{ member_id = "integer", text = "text" }`.
    #[serde(default)]
    columns: Option<BTreeMap<String, Holds>>,
    /// The SQL statement that processes a chunk and reads it as the relation `chunk`: exactly once for every target, with `database` at
    /// least once.
    #[serde(default)]
    apply: Option<String>,
    /// Creates a job for every target: exactly once.
    #[serde(default)]
    enqueue: Option<Children>,
    /// Emits an event for every target: exactly once.
    #[serde(default)]
    emit: Option<Emit>,
    /// Posts each chunk to a server: at least once.
    #[serde(default)]
    http: Option<Http>,
    /// Passes each chunk to a program: at least once.
    #[serde(default)]
    exec: Option<Exec>,
    /// The target duration of chunks, and the limits of their number of rows.
    #[serde(default)]
    chunk: ChunkSize,
    /// The maximum rate, in rows per second.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 100_000_000))]
    rate: Option<f64>,
    /// The share of time that chunks may take. The default is 1.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 1))]
    duty: Option<f64>,
    /// Times of day at which chunks may start. Without windows, chunks may start at any time.
    #[serde(default)]
    windows: Vec<WindowEntry>,
    /// The time zone of the windows, such as `Europe/Berlin`. The default is `UTC`.
    #[serde(default)]
    zone: Option<String>,
    /// The number of targets that may fail before the run is aborted. The default is 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    error_budget: Option<u64>,
    /// The bulk job of this file that the end of each run starts, in the same transaction and with the same
    /// parameters.
    #[serde(default)]
    then: Option<String>,
    /// Conditions that pause its runs to protect other users of the database.
    #[serde(default)]
    throttle: ThrottleEntry,
    /// Starts it automatically. The schedule has the bulk job's name.
    #[serde(default)]
    schedule: Option<BulkSchedule>,
}

// Without doc comments on the types: they would turn the schema's plain list of names into separate alternatives.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Holds {
    Text,
    Integer,
    Number,
    Boolean,
    Json,
}

impl From<Holds> for ColumnType {
    fn from(holds: Holds) -> Self {
        match holds {
            Holds::Text => Self::Text,
            Holds::Integer => Self::Integer,
            Holds::Number => Self::Number,
            Holds::Boolean => Self::Boolean,
            Holds::Json => Self::Json,
        }
    }
}

/// The jobs to create, one for each target: its row is the payload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Children {
    /// The kind of the jobs; any worker may run it.
    kind: String,
    /// The queue of the jobs. The default is `default`.
    #[serde(default)]
    queue: Option<String>,
    /// The priority within the queue, from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    priority: Option<u8>,
    /// The group of the jobs.
    #[serde(default)]
    group: Option<String>,
    /// The maximum number of attempts of each job. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_attempts: Option<u32>,
    /// The time limit of one attempt.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

/// The size of chunks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ChunkSize {
    /// The target duration of a chunk; on SQLite limited to 30 ms. The default is `350ms`.
    #[schemars(extend("format" = "milepost-duration-positive"))]
    target: Option<Humane>,
    /// The minimum number of rows of a chunk. The default is 50.
    #[schemars(range(min = 1, max = 1_000_000))]
    min: Option<u32>,
    /// The maximum number of rows of a chunk. The default is 50000, with `http` and `exec` 1000.
    #[schemars(range(min = 1, max = 1_000_000))]
    max: Option<u32>,
}

/// The position of a bulk job in the file: line and column of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) name: (usize, usize),
    pub(crate) source: (usize, usize),
    pub(crate) effect: (usize, usize),
}

/// Returns the position of each bulk job in the text.
pub(super) fn places(bulks: Option<&Node>, text: &str) -> BTreeMap<String, Places> {
    let lines = Lines::of(text);
    let of = |node: Option<&Node>, at: usize| lines.place(node.map_or(at, |node| node.span.start));
    let entries = bulks.map(Node::entries).unwrap_or_default().iter();
    let places = entries.map(|entry| {
        let effect = check::WAYS.iter().find_map(|way| entry.node.get(way));
        let targets = entry.node.get("source").or_else(|| entry.node.get("columns"));
        let (source, effect) = (of(targets, entry.at), of(effect, entry.at));
        (entry.key.clone(), Places { name: lines.place(entry.at), source, effect })
    });
    places.collect()
}
