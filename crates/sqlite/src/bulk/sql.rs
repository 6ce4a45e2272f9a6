//! The users' statements in SQLite's syntax: parameters keep their names; the names of Milepost's parameters begin with `milepost_`.
//!
//! SQLite has no statement that both changes data and returns its targets. So a chunk first finds its last key, then counts and applies the
//! targets between the cursor and that key; no other process can write in between.

use milepost_core::bulk::sql::{Apply, Bounds, Placeholders, Source};

/// The statements of a chunk, either the first one or one after the cursor.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// The last key of the next `limit` targets; no row if there are fewer.
    pub(super) bound: String,
    /// The number of targets up to that key, and the number of those that are not after the cursor.
    pub(super) count: String,
    /// The targets, in the order of their keys.
    pub(super) rows: String,
    /// The statement that applies them.
    pub(super) apply: Option<String>,
}

/// The statements of a bulk job.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) first: Pages,
    pub(super) next: Pages,
    /// For a run over the failures of another run.
    pub(super) failures: Pages,
    pub(super) last: String,
    pub(super) count: String,
    /// The source as it is read for a chunk, to check its query plan.
    pub(super) page: String,
}

impl Statements {
    pub(super) fn write(source: &Source, apply: Option<&Apply>) -> Self {
        let (keys, names) = (names(source), row(&names(source)));
        let (upper, bound) = (parameters("upper", keys.len()), parameters("bound", keys.len()));
        let between = |bounds| {
            format!("select * from ({}) as source where {names} <= {bound}", source.query(bounds, &mut Named))
        };
        let pages = |page, chunk: String| {
            let page = source.query(page, &mut Named);
            let look = format!("select {} from ({page}) as source where {names} <= {upper}", keys.join(", "));
            Pages { bound: look, ..Pages::over(&chunk, &keys.join(", "), apply) }
        };
        let behind = format!("{names} > {}", parameters("cursor", keys.len()));
        let run = ":milepost_run";
        let of_run = format!("retried_by = {run} and pos > :milepost_cursor_0");
        let same = keys.iter().enumerate();
        let same = same.map(|(at, key)| format!("source.{key} = milepost_key(failed.key, {at})"));
        let failed = format!(
            "select source.* from (select pos, key from milepost_bulk_failure where {of_run} \
             and pos <= :milepost_bound_0) as failed join ({}) as source on {}",
            source.query(Bounds::All, &mut Named),
            same.collect::<Vec<_>>().join(" and ")
        );
        let look = format!(
            "select pos from milepost_bulk_failure where {of_run} and pos <= :milepost_upper_0 \
             order by pos limit :milepost_limit offset :milepost_skip"
        );
        let last = source.query(Bounds::Last, &mut Named);
        let all = source.query(Bounds::All, &mut Named);
        let after = between(Bounds::After);
        let count = format!("select count(*), count(*) filter (where not {behind}) from ({after})");
        Self {
            first: pages(Bounds::First, between(Bounds::All)),
            next: Pages { count, ..pages(Bounds::Next, after) },
            failures: Pages { bound: look, ..Pages::over(&failed, "failed.pos", apply) },
            last: format!("select {} from ({last}) as source", keys.join(", ")),
            count: format!("select count(*) from ({all}) as source where {names} <= {upper}"),
            page: source.query(Bounds::Next, &mut Named),
        }
    }
}

impl Pages {
    /// Returns the statements without the one for the bound.
    fn over(chunk: &str, order: &str, apply: Option<&Apply>) -> Self {
        Self {
            bound: String::new(),
            count: format!("select count(*), 0 from ({chunk})"),
            rows: format!("{chunk} order by {order}"),
            apply: apply.map(|apply| apply.statement_over(chunk, &mut Named)),
        }
    }
}

struct Named;

impl Placeholders for Named {
    fn parameter(&mut self, name: &str) -> String {
        format!(":{name}")
    }

    fn cursor(&mut self, column: usize) -> String {
        format!(":milepost_cursor_{column}")
    }

    fn limit(&mut self) -> String {
        ":milepost_limit offset :milepost_skip".to_owned()
    }
}

/// Returns the key columns as quoted identifiers.
fn names(source: &Source) -> Vec<String> {
    source.key().iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect()
}

fn parameters(name: &str, columns: usize) -> String {
    row(&(0..columns).map(|column| format!(":milepost_{name}_{column}")).collect::<Vec<_>>())
}

fn row(columns: &[String]) -> String {
    match columns {
        [column] => column.clone(),
        _ => format!("({})", columns.join(", ")),
    }
}
