//! Operations on all jobs that match a filter, run by a bulk job, which can be viewed, aborted and resumed like any other.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::actions::job::JobAction;
use milepost_core::actions::select::select;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::bulk::operation::OperateJobs;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::payload_match;
use super::operate::{grace_default_ms, inputs};
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::{self, IdempotencyKey};
use crate::operate_in_bulk;
use crate::problem::{Code, Problem};

/// Maximum number of job ids in a preview.
const NAMED_MAX: usize = 20;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(operate_jobs))
}

/// The jobs, the operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperateManyRequest {
    /// The filter of the jobs.
    filter: OperateFilter,
    /// The operation.
    operation: JobAction,
    /// The reason, for the history of each job.
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
    /// As for a single job.
    #[schema(default = grace_default_ms)]
    grace_ms: Option<u64>,
    /// As for a single job.
    delay_ms: Option<u64>,
    /// Returns a preview of the jobs and changes nothing.
    #[serde(default)]
    dry: bool,
}

/// A filter of jobs. A job must match all given fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperateFilter {
    /// Jobs in this state.
    state: JobState,
    /// Jobs of this kind.
    kind: Option<String>,
    /// Jobs in this queue.
    queue: Option<String>,
    /// Jobs with this error code, or with this text in the error message.
    error: Option<String>,
    /// Jobs with this value in their payload, such as `customer.id=42`.
    payload: Option<String>,
    /// Jobs created at this time or later. Jobs whose id is not a UUID of version 7 of about that time are not found.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_from: Option<Timestamp>,
    /// Jobs created before this time.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_before: Option<Timestamp>,
    /// Jobs that failed permanently at this time or later.
    #[schema(value_type = Option<String>, format = DateTime)]
    failed_from: Option<Timestamp>,
}

/// The number of jobs, and the bulk job that applies the operation.
#[derive(Debug, Serialize, ToSchema)]
struct OperateManyAnswer {
    /// The bulk job that applies the operation. Missing for a preview, and if no job matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    bulk: Option<JobId>,
    /// Number of jobs that match now. The operation applies to these jobs, not to later ones.
    jobs: usize,
    /// The ids of some of them.
    some: Vec<JobId>,
}

/// Operate on all jobs that match a filter
///
/// With `dry`, returns the number of matching jobs and some of their ids. Otherwise starts a bulk job over the jobs that match
/// now, at most 100,000. It can be watched, aborted and resumed at `/v1/bulk-runs`. A job that does not allow the operation is
/// one of its failures. Servers run it in addition to their API.
#[utoipa::path(
    post, path = "/v1/jobs/operate-many", tag = "jobs", params(IdempotencyKey), request_body = OperateManyRequest,
    responses((status = 200, body = OperateManyAnswer), (status = 202, body = OperateManyAnswer)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn operate_jobs(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<OperateManyRequest>,
) -> Result<Response, Problem> {
    if request.reason.trim().is_empty() {
        return Err(
            Problem::new(Code::InvalidBody, "give the reason, for the history of these jobs").at("reason")
        );
    }
    let store = app.acting(actor.because(Some(&request.reason))?);
    let (action, state) = (request.operation, request.filter.state);
    let verb = action.fixed_verb().or_else(|| action.verb(state)).ok_or_else(|| {
        Problem::new(Code::IllegalTransition, action.refusal(state))
            .with_status(StatusCode::UNPROCESSABLE_ENTITY)
            .at("filter.state")
    })?;
    let inputs = inputs(request.grace_ms, request.delay_ms, Some(request.reason));
    let mut job = operate_in_bulk::job(&OperateJobs::new(&action.operation(verb, &inputs)?))?;
    idempotency.give(&mut job.key, 0);
    if !request.dry
        && let Some(bulk) = started_before(app.store.as_ref(), &job).await?
    {
        return Ok((StatusCode::ACCEPTED, Json(bulk)).into_response());
    }
    let found = select(request.filter.read()?, app.store.as_ref()).await?;
    let jobs: Vec<JobId> = found.into_iter().map(|(job, _)| job).collect();
    let some = jobs.iter().copied().take(NAMED_MAX).collect();
    let mut answer = OperateManyAnswer { bulk: None, jobs: jobs.len(), some };
    if request.dry || jobs.is_empty() {
        return Ok(Json(answer).into_response());
    }
    answer.bulk = Some(operate_in_bulk::start(store.as_ref(), verb, &job, &jobs).await?);
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

/// Returns the run that an earlier request with the same key started; refuses a request with different content.
async fn started_before(store: &dyn Store, job: &NewJob) -> Result<Option<OperateManyAnswer>, Problem> {
    if job.key.is_none() {
        return Ok(None);
    }
    let Some(bulk) = idempotency::holder(store, job).await? else { return Ok(None) };
    let filter = BulkFilter { job: Some(bulk), limit: 1, ..BulkFilter::default() };
    let total = store.bulks(&filter).await?.pop().and_then(|view| view.total);
    let jobs = total.map_or(0, |total| usize::try_from(total.rows).unwrap_or(usize::MAX));
    Ok(Some(OperateManyAnswer { bulk: Some(bulk), jobs, some: Vec::new() }))
}

impl OperateFilter {
    fn read(self) -> Result<JobFilter, Problem> {
        Ok(JobFilter {
            state: Some(self.state),
            kind: self.kind,
            queue: self.queue,
            error: self.error,
            payload: payload_match(self.payload.as_deref(), "filter.payload")?,
            created_from: self.created_from,
            created_before: self.created_before,
            failed_from: self.failed_from,
            ..JobFilter::default()
        })
    }
}
