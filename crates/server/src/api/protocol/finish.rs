//! What a worker says of its runs: how far they are, and how they ended.

use std::collections::HashSet;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use milepost_core::finish::{End, Failure, Finish, Finished, check_result};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::retry::RetryPolicy;
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, Report, check_checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::handle::Handle;
use crate::api::page;
use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

/// How many runs a request speaks of at most.
const RUNS_MAX: usize = 1_000;
/// How much is kept of a failure's name, and of what it says, in characters.
const CODE_CHARS_MAX: usize = 200;
const MESSAGE_CHARS_MAX: usize = 10_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(finish_runs)).routes(routes!(report_runs))
}

/// How runs ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FinishRequest {
    /// They, each once.
    #[schema(min_items = 1, max_items = 1000)]
    runs: Vec<RunEnd>,
}

/// How a run ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunEnd {
    /// Which run: as its claim named it.
    #[schema(value_type = String)]
    run: Handle,
    /// How it ended.
    outcome: Ending,
    /// What it returned (succeeded). One that cannot be stored fails the run: more than 1 MiB (of a task of a batch 256 KiB), nested too
    /// deeply, a number beyond all bounds.
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// A stable name of the failure, such as `http_503` (failed); of longer ones the first 200 characters. The default is `failed`.
    #[schema(min_length = 1)]
    error_code: Option<String>,
    /// The failure, for people (failed); why, for people (snoozed). The first 10,000 characters are kept.
    message: Option<String>,
    /// Whether another attempt can help (failed). The default is that it can.
    retryable: Option<bool>,
    /// The job is not claimed before this number of milliseconds has passed (snoozed; failed: if that is longer than the backoff). More
    /// than a hundred years counts as a hundred years.
    delay_ms: Option<u64>,
}

/// How a run can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// It is done.
    Succeeded,
    /// It failed; tried again later, if attempts are left and that can help.
    Failed,
    /// It is given back; the attempt does not count.
    Snoozed,
    /// It stopped, since it was asked to cancel.
    Canceled,
    /// It stopped, since it was asked to abort.
    Aborted,
}

/// What the store says, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct FinishAnswer {
    /// Of each.
    runs: Vec<Told>,
}

/// What the store says of a run's end.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// It is stored.
    Accepted,
    /// It had been stored before: an answer was lost.
    Repeated,
    /// The job has moved on; nothing was changed.
    Fenced,
}

impl From<Finished> for Told {
    fn from(finished: Finished) -> Self {
        match finished {
            Finished::Accepted => Self::Accepted,
            Finished::Repeated => Self::Repeated,
            Finished::Fenced => Self::Fenced,
        }
    }
}

/// End runs
///
/// All in one transaction. Can be repeated: what was stored before is answered with `repeated`.
#[utoipa::path(
    post, path = "/v1/workers/{id}/finish", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = FinishRequest, responses((status = 200, body = FinishAnswer)), security(("token" = ["worker"]))
)]
async fn finish_runs(
    State(app): State<App>,
    Path(worker): Path<WorkerId>,
    Body(request): Body<FinishRequest>,
) -> Result<Json<FinishAnswer>, Problem> {
    page::check_count(request.runs.len(), RUNS_MAX, "runs")?;
    check_once(request.runs.iter().map(|end| end.run.run.job), "a job ends once")?;
    let finishes: Vec<Finish> = request.runs.into_iter().map(RunEnd::into_finish).collect();
    let finished = app.store.finish_many(worker, &finishes).await?;
    app.tally.ended(&finishes, &finished);
    Ok(Json(FinishAnswer { runs: finished.into_iter().map(Told::from).collect() }))
}

/// Refuses a job that a request speaks of twice.
fn check_once(jobs: impl Iterator<Item = JobId>, words: &str) -> Result<(), Problem> {
    let mut seen = HashSet::new();
    for (index, job) in jobs.enumerate() {
        if !seen.insert(job) {
            return Err(Problem::unprocessable("run_twice", words).at(format!("runs[{index}]")));
        }
    }
    Ok(())
}

impl RunEnd {
    fn into_finish(self) -> Finish {
        let Handle { run, grouped, task, .. } = self.run;
        Finish { run, grouped, task, end: self.into_end() }
    }

    fn into_end(self) -> End {
        let delay = self.delay_ms.map(Duration::from_millis);
        let message = beginning(self.message.unwrap_or_default(), MESSAGE_CHARS_MAX);
        match self.outcome {
            Ending::Succeeded => success(self.result, self.run.task),
            Ending::Snoozed => End::Yield { delay: delay.unwrap_or_default(), note: message },
            Ending::Canceled => End::Cancel,
            Ending::Aborted => End::Abort,
            Ending::Failed => {
                let code = self.error_code.unwrap_or_else(|| "failed".to_owned());
                let code = beginning(code, CODE_CHARS_MAX);
                let failure = Failure { code, message };
                let Handle { attempt, max_attempts, .. } = self.run;
                let retryable = self.retryable.unwrap_or(true);
                let policy = RetryPolicy::default();
                match policy.after_failure(attempt, max_attempts, retryable, delay, fastrand::f64()) {
                    (Verb::Retry, delay) => End::Retry { delay, failure },
                    _ => End::Fail { failure },
                }
            }
        }
    }
}

/// A result that cannot be stored fails its run, and no other one of the request.
fn success(result: Option<Box<RawValue>>, is_task: bool) -> End {
    let result = result.map(|result| result.get().to_owned());
    match result.as_deref().map_or(Ok(()), |result| check_result(result, is_task)) {
        Ok(()) => End::Succeed { result },
        Err(failure) => End::Fail { failure },
    }
}

/// So many characters of it: a failure is told although it has much to say.
fn beginning(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
    }
    text
}

/// How far runs are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReportRequest {
    /// They.
    #[schema(min_items = 1, max_items = 1000)]
    runs: Vec<RunReport>,
}

/// How far a run is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunReport {
    /// Which run: as its claim named it.
    #[schema(value_type = String)]
    run: Handle,
    /// For people.
    progress: Option<Progress>,
    /// Where the next attempt can go on from.
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<Box<RawValue>>,
}

/// What the store says, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct ReportAnswer {
    /// Whether each was taken; what was not is of a job that has moved on.
    accepted: Vec<bool>,
}

/// Report progress and checkpoints
///
/// A checkpoint is given to the job's next attempt.
#[utoipa::path(
    post, path = "/v1/workers/{id}/report", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = ReportRequest, responses((status = 200, body = ReportAnswer)), security(("token" = ["worker"]))
)]
async fn report_runs(
    State(app): State<App>,
    Path(_worker): Path<WorkerId>,
    Body(request): Body<ReportRequest>,
) -> Result<Json<ReportAnswer>, Problem> {
    page::check_count(request.runs.len(), RUNS_MAX, "runs")?;
    check_once(request.runs.iter().map(|report| report.run.run.job), "a request reports of a job once")?;
    let reports: Vec<Report> = request
        .runs
        .into_iter()
        .map(|report| Report {
            run: report.run.run,
            progress: report.progress.map(|progress| Progress {
                message: progress.message.map(|message| beginning(message, MESSAGE_CHARS_MAX)),
                ..progress
            }),
            checkpoint: report.checkpoint.map(|checkpoint| checkpoint.get().to_owned()),
        })
        .collect();
    for (index, report) in reports.iter().enumerate() {
        report.checkpoint.as_deref().map_or(Ok(()), check_checkpoint).map_err(|why| {
            Problem::unprocessable("invalid_checkpoint", why).at(format!("runs[{index}].checkpoint"))
        })?;
    }
    Ok(Json(ReportAnswer { accepted: app.store.report_many(&reports).await? }))
}
