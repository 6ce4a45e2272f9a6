//! `[bulk.NAME]`: bulk jobs, each with where its targets come from and what is done to them.

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
use super::fault::place;
use super::http::Http;
use super::humane::Humane;

/// Goes through many targets a chunk at a time, and can be stopped and resumed (docs/BULK.md). It does exactly one of
/// `apply`, `enqueue`, `emit`, `http` and `exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkEntry {
    /// A label that lists filter by: what comes out of it, such as `notification rows`.
    #[serde(default)]
    r#type: Option<String>,
    /// A label that lists filter by: what it is for, such as `popular content`.
    #[serde(default)]
    category: Option<String>,
    /// Of all bulk jobs of a group one runs at a time. The default is its name.
    #[serde(default)]
    group: Option<String>,
    /// Where its runs wait. The default is `bulk`.
    #[serde(default)]
    queue: Option<String>,
    /// Which of the group goes first: from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    priority: Option<u8>,
    /// How many attempts a run gets; a crash of its worker spends one. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_attempts: Option<u32>,
    /// The database of this file, by the name that `[database.NAME]` gives it, in which its targets are, with all that its SQL names. The default is
    /// the store's own.
    #[serde(default)]
    database: Option<String>,
    /// Which targets there are: `select … where KEY > :cursor order by KEY limit :limit`.
    #[serde(default)]
    source: Option<String>,
    /// The columns that the source goes by.
    #[serde(default)]
    #[schemars(length(min = 1))]
    key: Option<Vec<String>>,
    /// Instead of `source` and `key`: the columns of the file that each run is started with (`milepost bulk start --from`)
    /// and what they hold, such as `{ member_id = "integer", text = "text" }`.
    #[serde(default)]
    columns: Option<BTreeMap<String, Holds>>,
    /// What is done to a chunk, in SQL that reads the relation `chunk`: exactly once for every target, with `database` at
    /// least once.
    #[serde(default)]
    apply: Option<String>,
    /// Makes a job of every target: exactly once.
    #[serde(default)]
    enqueue: Option<Children>,
    /// Emits an event for every target: exactly once.
    #[serde(default)]
    emit: Option<Emit>,
    /// Posts each chunk to a server: at least once.
    #[serde(default)]
    http: Option<Http>,
    /// Gives each chunk to a program: at least once.
    #[serde(default)]
    exec: Option<Exec>,
    /// How long chunks shall take, and how many rows they may have.
    #[serde(default)]
    chunk: ChunkSize,
    /// How many rows a second at most.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 100_000_000))]
    rate: Option<f64>,
    /// The part of the time that chunks may take, over 0 and at most 1. The default is 1.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 1))]
    duty: Option<f64>,
    /// Times of day at which chunks may start. Without any it is always.
    #[serde(default)]
    windows: Vec<WindowEntry>,
    /// The time zone of the windows, such as `Europe/Berlin`. The default is `UTC`.
    #[serde(default)]
    zone: Option<String>,
    /// How many targets may fail before the run is aborted. The default is 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    error_budget: Option<u64>,
    /// The bulk job of this file that is started by the end of each run, in the same commit and with the same
    /// parameters.
    #[serde(default)]
    then: Option<String>,
    /// What holds its runs so that others get their turn.
    #[serde(default)]
    throttle: ThrottleEntry,
    /// Starts it by itself. The schedule has the bulk job's name.
    #[serde(default)]
    schedule: Option<BulkSchedule>,
}

// No docs on the types: with them the schema would be no plain list of names.
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

/// The jobs that are made, one a target: its row is the payload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Children {
    /// Their kind; any worker may run it.
    kind: String,
    /// Where they wait. The default is `default`.
    #[serde(default)]
    queue: Option<String>,
    /// Which jobs of the queue go first: from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    priority: Option<u8>,
    /// Their group.
    #[serde(default)]
    group: Option<String>,
    /// How many attempts each gets. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_attempts: Option<u32>,
    /// How long one attempt may take.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

/// What chunks are like.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ChunkSize {
    /// How long a chunk shall take; on SQLite at most 30 ms, whatever is written. The default is `350ms`.
    #[schemars(extend("format" = "milepost-duration-positive"))]
    target: Option<Humane>,
    /// The fewest rows of a chunk. The default is 50.
    #[schemars(range(min = 1, max = 1_000_000))]
    min: Option<u32>,
    /// The most rows of a chunk. The default is 50000, with `http` and `exec` 1000.
    #[schemars(range(min = 1, max = 1_000_000))]
    max: Option<u32>,
}

/// Where a bulk job stands in the file: line and column of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) name: (usize, usize),
    pub(crate) source: (usize, usize),
    pub(crate) effect: (usize, usize),
}

/// Where each bulk job stands in the text.
pub(super) fn places(bulks: Option<&Node>, text: &str) -> BTreeMap<String, Places> {
    let of = |node: Option<&Node>, at: usize| place(text, node.map_or(at, |node| node.span.start));
    let entries = bulks.map(Node::entries).unwrap_or_default().iter();
    let places = entries.map(|entry| {
        let effect = check::WAYS.iter().find_map(|way| entry.node.get(way));
        let targets = entry.node.get("source").or_else(|| entry.node.get("columns"));
        let (source, effect) = (of(targets, entry.at), of(effect, entry.at));
        (entry.key.clone(), Places { name: place(text, entry.at), source, effect })
    });
    places.collect()
}
