//! Implementation of the operators' port.

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::job::StartAt;
use milepost_core::listing::{JobRow, JobView, KindCount, QueueKinds, QueueView};
use milepost_core::port::{AdminStore, JobEdit, Operated, Operation, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::WorkerView;
use sqlx::postgres::PgRow;
use sqlx::{Row, ValueRef};
use uuid::Uuid;

use crate::error::{change_error, edit_error};
use crate::row::{self, Decoded, named};
use crate::session::{Query, Repeatable};
use crate::store::PostgresStore;

#[async_trait]
impl AdminStore for PostgresStore {
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated> {
        operation.check()?;
        let (action, query) = (AuditedAction::operate(job, operation.verb), change(job, operation));
        let query = Repeatable::of(query);
        let row = self.act(&self.inner.intake, &action, async |session| session.row(query).await).await;
        let state = row
            .and_then(row::value::<String>)
            .map_err(|error| change_error(&self.inner.place, job, operation.verb, error))?;
        match state.parse::<JobState>() {
            Ok(state) => Ok(Operated::Done(state)),
            Err(_) => Ok(Operated::StopRequested),
        }
    }

    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState> {
        let refused = |invalid| StoreError::Invalid { index: 0, invalid };
        edit.check(self.inner.options.payload_bytes_max).map_err(refused)?;
        let query = Repeatable::of(edit_query(job, edit));
        let (action, fields) = (AuditedAction::operate(job, Verb::Edit), edit.fields());
        let tell = move |_: &Option<PgRow>| Some(serde_json::json!({ "edited": fields }));
        let row = self
            .act_telling(&self.inner.intake, &action, async |session| session.row(query).await, tell)
            .await;
        let state =
            row.and_then(row::value::<String>).map_err(|error| edit_error(&self.inner.place, job, error))?;
        state.parse().map_err(|unknown| self.fail("edit_job", sqlx::Error::Decode(Box::new(unknown))))
    }

    async fn confirm_seen(&self) -> StoreResult<()> {
        self.confirm_replication().await
    }

    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
        let query = sqlx::query(page_statement(filter))
            .bind(filter.state.map(JobState::as_str))
            .bind(filter.kind.as_deref())
            .bind(filter.queue.as_deref())
            .bind(filter.before.map_or(Uuid::max(), |job| job.0))
            .bind(i64::from(filter.limit));
        let query = match &filter.key {
            Some(key) => query.bind(key),
            None => query,
        };
        // State filters use the pool with pinned plans, so that rare states are not searched for by scanning ten million
        // other jobs when the statistics of ANALYZE suggest it. Filters by kind or queue may have to scan, and use the other
        // pool so that they do not delay claims.
        let looked_for = filter.kind.is_some() || filter.queue.is_some();
        let sessions = if looked_for { &self.inner.calm } else { &self.inner.hot };
        self.listed("jobs", sessions.rows(query).await, row::job_row)
    }

    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        let found = self.inner.lookups().row(sqlx::query(sql!("job")).bind(job.0)).await;
        let view = found.and_then(|row| row.as_ref().map(row::job_view).transpose());
        let mut view = view.map_err(|e| self.fail("job", e))?;
        if let Some(view) = &mut view {
            view.last_failure = self.last_failures_of(&[job], i32::MAX).await?.pop();
        }
        Ok(view)
    }

    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        if self.job(job).await?.is_none() {
            return Ok(None);
        }
        let tell = |(): &()| Some(serde_json::json!({ "revealed": true }));
        let action = AuditedAction::reveal(job);
        let noted = self.act_telling(&self.inner.calm, &action, async |_| Ok(()), tell).await;
        noted.map_err(|e| self.fail("reveal_job", e))?;
        self.job(job).await
    }

    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>> {
        let query = match part {
            HistoryPart::After { pos, limit } => {
                sqlx::query(sql!("history")).bind(job.0).bind(pos).bind(i64::from(limit))
            }
            HistoryPart::Newest { limit } => {
                sqlx::query(sql!("history_newest")).bind(job.0).bind(i64::from(limit))
            }
        };
        self.listed("history", self.inner.lookups().rows(query).await, row::history_entry)
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("queues"))).await;
        rows.and_then(|rows| queue_views(&rows)).map_err(|e| self.fail("queues", e))
    }

    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>> {
        let query = sqlx::query(sql!("queues_by_kind")).bind(i64::from(kinds_max));
        let rows = self.inner.calm.rows(query).await;
        rows.and_then(|rows| queues_with_kinds(&rows)).map_err(|e| self.fail("queues_by_kind", e))
    }

    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool> {
        let query = sqlx::query(sql!("pause_queue")).bind(queue.to_owned()).bind(paused);
        let action = AuditedAction::pause_queue(queue, paused);
        let query = Repeatable::of(query);
        let changed = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        changed.map(|changed| changed.is_some()).map_err(|e| self.fail("pause_queue", e))
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("workers"))).await;
        self.listed("workers", rows, row::worker_view)
    }

    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("count_by_state"))).await;
        self.listed("count_by_state", rows, |row| Ok((named(row, "state")?, row.try_get("count")?)))
    }
}

impl PostgresStore {
    /// Waits until a synchronous standby has the commits that an answer without a change of its own is based on.
    pub(crate) async fn confirm_replication(&self) -> StoreResult<()> {
        let confirmed = self.inner.intake.execute(sqlx::query(sql!("confirm_replication"))).await;
        confirmed.map(drop).map_err(|e| self.fail("confirm_replication", e))
    }

    /// Returns a refusal that depends on rows after such a wait, and every other error immediately.
    pub(crate) async fn when_replicated(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Illegal { .. } | StoreError::NoSuchJob(_) | StoreError::Batch(_) => {
                self.confirm_replication().await.err().unwrap_or(error)
            }
            error => error,
        }
    }

    /// Decodes the rows of a list that `verb` returned, except those that [cannot be read](row::readable).
    pub(crate) fn listed<T>(
        &self,
        verb: &'static str,
        rows: Result<Vec<PgRow>, sqlx::Error>,
        decode: impl Fn(&PgRow) -> Decoded<T>,
    ) -> StoreResult<Vec<T>> {
        let rows = rows.map_err(|e| self.fail(verb, e))?;
        Ok(row::readable(verb, &rows, decode))
    }
}

/// Builds the query that applies an operation to one job and returns the job's state.
pub(crate) fn change(job: JobId, operation: &Operation) -> Query {
    sqlx::query(sql!("change"))
        .bind(job.0)
        .bind(operation.verb.as_str())
        .bind(operation.reason().map(str::to_owned))
        .bind(whole_ms(operation.delay))
        .bind(whole_ms(operation.grace))
}

fn edit_query(job: JobId, edit: &JobEdit) -> Query {
    let (at, delay) = match edit.start {
        None => (None, None),
        Some(StartAt::Now) => (None, Some(0)),
        Some(StartAt::After(delay)) => (None, Some(whole_ms(delay))),
        Some(StartAt::At(at)) => (Some(jiff_sqlx::Timestamp::from(at)), None),
    };
    sqlx::query(sql!("edit"))
        .bind(job.0)
        .bind(edit.payload.as_ref().map(|payload| payload.get().to_owned()))
        .bind(edit.priority.map(|priority| i32::from(priority.get())))
        .bind(at)
        .bind(delay)
        .bind(edit.max_attempts.map(u32::cast_signed))
        .bind(edit.reason().map(str::to_owned))
}

/// Returns the statement whose index contains few rows besides those that match the filter.
fn page_statement(filter: &JobFilter) -> &'static str {
    use JobState::{Aborted, Blocked, Canceled, Failed, Pending, RetryWait, Running, Skipped, Succeeded};
    match filter.state {
        _ if filter.key.is_some() => sql!("jobs_with_key"),
        None | Some(Pending | Succeeded) => sql!("jobs"),
        Some(Running) => sql!("jobs_running"),
        Some(Blocked | RetryWait | Failed | Aborted) => sql!("jobs_aside"),
        Some(Canceled | Skipped) => sql!("jobs_ended_aside"),
    }
}

/// Folds rows of (queue, state, count), sorted by queue, into queues.
fn queue_views(rows: &[PgRow]) -> Decoded<Vec<QueueView>> {
    let mut views: Vec<QueueView> = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        if views.last().is_none_or(|last| last.name != name) {
            let paused_at = row.try_get::<Option<jiff_sqlx::Timestamp>, _>("paused_at")?;
            views.push(QueueView {
                name,
                paused_at: paused_at.map(jiff_sqlx::Timestamp::to_jiff),
                workers: row.try_get("workers")?,
                oldest_due_at: None,
                counts: Vec::new(),
            });
        }
        if let Some(view) = views.last_mut().filter(|_| row.try_get_raw("state").is_ok_and(|s| !s.is_null()))
        {
            let oldest_due_at = row::time(row, "oldest_due_at")?;
            view.oldest_due_at = view.oldest_due_at.into_iter().chain(oldest_due_at).min();
            view.counts.push((named(row, "state")?, row.try_get("jobs")?));
        }
    }
    Ok(views)
}

/// Folds rows of (queue, kind, state, count), sorted by queue, into queues.
fn queues_with_kinds(rows: &[PgRow]) -> Decoded<Vec<QueueKinds>> {
    let mut queues: Vec<QueueKinds> = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        if queues.last().is_none_or(|last| last.name != name) {
            let paused_at = row.try_get::<Option<jiff_sqlx::Timestamp>, _>("paused_at")?;
            let paused_at = paused_at.map(jiff_sqlx::Timestamp::to_jiff);
            queues.push(QueueKinds { name, paused_at, counts: Vec::new() });
        }
        if let (Some(queue), Some(jobs)) = (queues.last_mut(), row.try_get("jobs")?) {
            let (kind, state) = (row.try_get("kind")?, named(row, "state")?);
            let (due, oldest_due_at) = (row.try_get("due")?, row::time(row, "oldest_due_at")?);
            queue.counts.push(KindCount { kind, state, jobs, due, oldest_due_at });
        }
    }
    Ok(queues)
}

#[cfg(test)]
mod tests {
    use milepost_core::actions::GRACE_DEFAULT;
    use milepost_core::duration::whole_ms;

    #[test]
    fn the_functions_for_operators_have_the_same_default_grace_as_their_actions() {
        let expected = whole_ms(GRACE_DEFAULT).to_string();
        for sql in [include_str!("../sql/api.sql"), include_str!("../sql/batch_operations.sql")] {
            let mut defaults: Vec<&str> = sql
                .split("grace_ms bigint default ")
                .skip(1)
                .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
                .collect();
            // The functions that apply any verb have none.
            defaults.retain(|ms| *ms != "0");
            assert!(!defaults.is_empty() && defaults.iter().all(|ms| *ms == expected), "{defaults:?}");
        }
    }
}
