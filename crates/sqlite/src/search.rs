//! Searching for jobs.

use async_trait::async_trait;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobsFound, LISTED_CHARS_MAX, LastFailure};
use milepost_core::port::{SearchStore, StoreResult};
use milepost_core::search::{JobFilter, PayloadMatch};
use milepost_core::sql;
use milepost_core::state::JobState;
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::error::Failure;
use crate::listing::{self, last_failures};
use crate::row::{self, Id};
use crate::store::SqliteStore;

#[async_trait]
impl SearchStore for SqliteStore {
    async fn search_jobs(&self, search: &JobFilter) -> StoreResult<JobsFound> {
        let search = search.clone();
        self.read("search_jobs", move |conn| find(conn, &search)).await
    }

    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>> {
        let jobs = jobs.to_vec();
        self.read("last_changes", move |conn| last_changes(conn, &jobs)).await
    }

    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>> {
        let jobs = jobs.to_vec();
        self.read("last_failures", move |conn| last_failures(conn, &jobs, LISTED_CHARS_MAX)).await
    }
}

fn last_changes(conn: &Connection, jobs: &[JobId]) -> Result<Vec<HistoryEntry>, Failure> {
    let mut statement = conn.prepare_cached(sql!("last_change"))?;
    let mut changes = Vec::new();
    for job in jobs {
        changes.extend(statement.query_row([Id(job)], listing::read_entry).optional()?);
    }
    Ok(changes)
}

fn find(conn: &Connection, search: &JobFilter) -> Result<JobsFound, Failure> {
    let payload = search.payload.as_ref();
    let params = named_params! {
        "?1": Id(&search.newest()),
        "?2": Id(&search.oldest()),
        "?3": search.limit,
        "?4": search.scan(),
        "?5": search.state.map(JobState::as_str),
        "?6": search.kind,
        "?7": search.queue,
        "?8": search.key,
        "?9": search.created_from.map(jiff::Timestamp::as_millisecond),
        "?10": search.created_before.map(jiff::Timestamp::as_millisecond),
        "?11": search.failed_from.map(jiff::Timestamp::as_millisecond),
        "?12": search.error,
        "?13": payload.map(path),
        "?14": payload.map(|found| found.value.to_string()),
        "?15": search.place().as_str(),
    };
    let mut statement = conn.prepare_cached(sql!("search"))?;
    let mut found = statement.query(params)?;
    let (mut rows, mut ids, mut looked_to) = (Vec::new(), Vec::new(), None);
    while let Some(row) = found.next()? {
        looked_to = row::job_opt(row, 16)?;
        if let Some(id) = row::job_opt(row, 0)? {
            ids.push(id);
            rows.extend(row::readable("jobs", std::iter::once(listing::read_row(row)))?);
        }
    }
    Ok(JobsFound::page(rows, &ids, search.limit, looked_to))
}

/// Returns the path in SQLite's syntax. Member names are quoted. SQLite cannot escape a quote in a name, so such a path matches nothing.
fn path(payload: &PayloadMatch) -> String {
    let step = |name: &String| match name.parse::<u32>() {
        Ok(place) => format!("[{place}]"),
        Err(_) => format!(".\"{}\"", name.replace('"', "\u{1}")),
    };
    format!("${}", payload.path.iter().map(step).collect::<String>())
}
