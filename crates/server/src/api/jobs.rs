//! Listing and reading jobs.

use axum::Json;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, JobView};
use milepost_core::search::{JobFilter, PayloadMatch};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::attempt::{Attempt, attempts};
use super::page::{self, Page};
use crate::app::{App, Server};
use crate::large_reads::LargePermit;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_jobs))
        .routes(routes!(get_job))
        .routes(routes!(get_job_history))
        .routes(routes!(get_job_attempts))
}

/// Filter of the jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobsParams {
    /// Only jobs in this state.
    state: Option<JobState>,
    /// Only jobs of this kind.
    kind: Option<String>,
    /// Only jobs in this queue.
    queue: Option<String>,
    /// Only jobs with this key.
    key: Option<String>,
    /// Only jobs with an attempt that failed with this error code, or with this text in its error message.
    error: Option<String>,
    /// Only jobs with this value in their payload: a path and a value, such as `customer.id=42`.
    payload: Option<String>,
    /// Only jobs created at this time or later. Jobs whose id is not a UUID of version 7 of about that time are not found.
    #[param(value_type = Option<String>, format = DateTime)]
    created_from: Option<Timestamp>,
    /// Only jobs created before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    created_before: Option<Timestamp>,
    /// Only jobs that failed permanently at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    failed_from: Option<Timestamp>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<JobId>,
}

/// List jobs
///
/// Newest first. The filters `kind`, `queue`, `error`, `payload` and times search 5,000 jobs per page, so a page may be empty and still have a
/// `next_cursor`.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", params(JobsParams), responses((status = 200, body = Page<JobRow>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_jobs(app: App, Query(params): Query<JobsParams>) -> Result<Json<Page<JobRow>>, Problem> {
    let limit = page::limit(params.limit)?;
    let filter = params.filter(limit)?;
    // A limited token has jobs among those of others, which a search reads page by page.
    if filter.needs_search() || app.limited.is_some() {
        let found = app.store.search_jobs(&filter).await?;
        return Ok(Json(Page { items: found.rows, next_cursor: found.next.map(|job| job.to_string()) }));
    }
    let found = app.store.jobs(&JobFilter { limit: limit + 1, ..filter }).await?;
    Ok(Json(Page::of(found, limit, |job| job.id.to_string())))
}

impl JobsParams {
    fn filter(self, limit: u32) -> Result<JobFilter, Problem> {
        Ok(JobFilter {
            state: self.state,
            kind: self.kind,
            queue: self.queue,
            key: self.key,
            error: self.error,
            payload: payload_match(self.payload.as_deref(), "query payload")?,
            created_from: self.created_from,
            created_before: self.created_before,
            failed_from: self.failed_from,
            before: self.cursor,
            scan: None,
            limit,
        })
    }
}

/// Parses the payload filter.
pub(super) fn payload_match(text: Option<&str>, at: &str) -> Result<Option<PayloadMatch>, Problem> {
    let parsed = text.map(PayloadMatch::parse).transpose();
    parsed.map_err(|words| Problem::new(Code::InvalidParameter, words).at(at))
}

/// Get a job
///
/// With its payload, its result, and the reason why it does not run now.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = JobId, Path, description = "The job")),
    responses((status = 200, body = JobView)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_job(app: App, Path(id): Path<JobId>) -> Result<Json<JobView>, Problem> {
    let view = app.store.job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
    Ok(Json(view))
}

/// The requested part of a history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryParams {
    /// Maximum number of state changes that are read. The default is 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only state changes after this position.
    #[param(value_type = Option<i64>)]
    after: Option<i64>,
}

/// Get a job's history
///
/// Every change of its state, oldest first. If there are more than `limit`, or more than 4 MiB, the header `Link` has the URL of the next page.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/history", tag = "jobs", params(("id" = JobId, Path, description = "The job"), HistoryParams),
    responses((status = 200, body = Vec<HistoryEntry>, headers(("Link", description = "The next page, with `rel=\"next\"`")))),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_job_history(
    app: App,
    Path(id): Path<JobId>,
    Query(params): Query<HistoryParams>,
) -> Result<Response, Problem> {
    let permit = app.large.permit().await;
    let limit = page::limit(params.limit.or(Some(page::ROWS_MAX)))?;
    let (entries, next) = history(&app, &permit, id, params.after, limit).await?;
    let path = format!("/v1/jobs/{id}/history");
    Ok((page::next_page(&path, next, params.limit), Json(entries)).into_response())
}

/// The requested part of the attempts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AttemptsParams {
    /// Only attempts that began after this position in the history.
    #[param(value_type = Option<i64>)]
    after: Option<i64>,
}

/// Get a job's attempts
///
/// Each claim of the job and its end, oldest first. They are computed from up to 1,000 state changes, or 4 MiB; if there are more, the header `Link`
/// has the URL of the next attempts. A page without attempts may have a next one.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/attempts", tag = "jobs", params(("id" = JobId, Path, description = "The job"), AttemptsParams),
    responses((status = 200, body = Vec<Attempt>, headers(("Link", description = "The next page, with `rel=\"next\"`")))),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_job_attempts(
    app: App,
    Path(id): Path<JobId>,
    Query(params): Query<AttemptsParams>,
) -> Result<Response, Problem> {
    let permit = app.large.permit().await;
    let (mut entries, mut next) = history(&app, &permit, id, params.after, page::ROWS_MAX).await?;
    // If a page has one attempt, its end may be on the next page. If it has more, the last one is left to the next page.
    if let (Some(_), Some(0)) = (next, last_claim(&entries)) {
        let more;
        (more, next) = history(&app, &permit, id, next, page::ROWS_MAX).await?;
        entries.extend(more);
    }
    if let (Some(_), Some(claim @ 1..)) = (next, last_claim(&entries)) {
        entries.truncate(claim);
        next = entries.last().map(|entry| entry.pos);
    }
    let path = format!("/v1/jobs/{id}/attempts");
    Ok((page::next_page(&path, next, None), Json(attempts(&entries))).into_response())
}

fn last_claim(entries: &[HistoryEntry]) -> Option<usize> {
    entries.iter().rposition(|entry| entry.verb == Verb::Claim)
}

/// Returns a part of the history of a job, and the position after which it continues; an error if the job does not exist.
async fn history(
    app: &App,
    permit: &LargePermit<'_>,
    id: JobId,
    after: Option<i64>,
    limit: u32,
) -> Result<(Vec<HistoryEntry>, Option<i64>), Problem> {
    let read = |after: Option<i64>, limit| {
        app.store.history(id, HistoryPart::After { pos: after.unwrap_or_default(), limit })
    };
    let (entries, next) =
        page::large_rows(permit, after, limit, |entry: &HistoryEntry| entry.pos, read).await?;
    if entries.is_empty() && app.store.job(id).await?.is_none() {
        return Err(StoreError::NoSuchJob(id).into());
    }
    Ok((entries, next))
}
