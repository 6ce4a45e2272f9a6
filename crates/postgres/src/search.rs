//! Search for jobs.

use async_trait::async_trait;
use jiff_sqlx::ToSqlx;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, JobsFound, LISTED_CHARS_MAX, LastFailure};
use milepost_core::port::{SearchStore, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::sql;
use milepost_core::state::JobState;
use sqlx::postgres::PgRow;
use sqlx::{Row, ValueRef};

use crate::row::{self, Decoded};
use crate::session::Query;
use crate::store::PostgresStore;

#[async_trait]
impl SearchStore for PostgresStore {
    async fn search_jobs(&self, search: &JobFilter) -> StoreResult<JobsFound> {
        let rows = self.inner.calm.rows(query(search)).await;
        let found = rows.and_then(|rows| {
            let looked_to: Option<uuid::Uuid> = match rows.first() {
                Some(row) => row.try_get("looked_to")?,
                None => None,
            };
            let id = |row: &PgRow| Ok(row.try_get::<Option<uuid::Uuid>, _>("id")?.map(JobId));
            let found: Vec<JobId> =
                rows.iter().filter_map(|row| id(row).transpose()).collect::<Decoded<_>>()?;
            let jobs = row::readable("jobs", &rows, job).into_iter().flatten().collect();
            Ok(JobsFound::page(jobs, &found, search.limit, looked_to.map(JobId)))
        });
        found.map_err(|e| self.fail("search_jobs", e))
    }

    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>> {
        let ids: Vec<uuid::Uuid> = jobs.iter().map(|job| job.0).collect();
        let rows = self.inner.lookups().rows(sqlx::query(sql!("last_changes")).bind(ids)).await;
        self.listed("last_changes", rows, row::history_entry)
    }

    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>> {
        self.last_failures_of(jobs, LISTED_CHARS_MAX).await
    }
}

impl PostgresStore {
    /// Returns the last failures of jobs, with up to `chars` characters of each message.
    pub(crate) async fn last_failures_of(&self, jobs: &[JobId], chars: i32) -> StoreResult<Vec<LastFailure>> {
        let ids: Vec<uuid::Uuid> = jobs.iter().map(|job| job.0).collect();
        let query = sqlx::query(sql!("last_failures")).bind(ids).bind(chars);
        self.listed("last_failures", self.inner.lookups().rows(query).await, |row| {
            Ok(LastFailure {
                job: JobId(row.try_get("id")?),
                at: row.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff(),
                code: row.try_get("error_code")?,
                message: row.try_get("error_message")?,
            })
        })
    }
}

fn query(search: &JobFilter) -> Query {
    let (path, value) = match &search.payload {
        Some(found) => (Some(found.path.clone()), Some(found.value.to_string())),
        None => (None, None),
    };
    sqlx::query(sql!("search"))
        .bind(search.state.map(JobState::as_str))
        .bind(search.kind.clone())
        .bind(search.queue.clone())
        .bind(search.newest().0)
        .bind(search.oldest().0)
        .bind(i64::from(search.scan()))
        .bind(search.key.clone())
        .bind(search.created_from.map(ToSqlx::to_sqlx))
        .bind(search.created_before.map(ToSqlx::to_sqlx))
        .bind(search.failed_from.map(ToSqlx::to_sqlx))
        .bind(search.error.clone())
        .bind(path)
        .bind(value)
        .bind(i64::from(search.limit))
        .bind(search.place().as_str())
}

/// Decodes a row; `None` if it only contains the position where the search ended.
fn job(row: &PgRow) -> Decoded<Option<JobRow>> {
    if row.try_get_raw("id")?.is_null() { Ok(None) } else { row::job_row(row).map(Some) }
}
