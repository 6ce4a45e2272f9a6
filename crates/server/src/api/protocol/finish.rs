//! Reports of workers on their runs: progress, checkpoints and outcomes.

use std::collections::HashSet;
use std::time::Duration;

use axum::Json;
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

use super::backoff::Backoff;
use super::handle::Handle;
use crate::api::page;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

/// Maximum number of runs in one request.
const RUNS_MAX: usize = 1_000;
/// Maximum lengths of an error code and of an error message, in characters. Longer ones are truncated.
const CODE_CHARS_MAX: usize = 200;
const MESSAGE_CHARS_MAX: usize = 10_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(finish_runs)).routes(routes!(report_runs))
}

/// The ends of runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FinishRequest {
    /// The runs. Each job must occur only once.
    #[schema(min_items = 1, max_items = 1000)]
    runs: Vec<RunEnd>,
}

/// The end of a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunEnd {
    /// The identifier of the run, from its claim.
    #[schema(value_type = String)]
    run: Handle,
    /// The outcome.
    outcome: Ending,
    /// The result (succeeded). A result that cannot be stored fails the run: more than 1 MiB (256 KiB for a task of a batch), nested too
    /// deeply, or with a number out of range.
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// The error code, such as `http_503` (failed). The first 200 characters are kept. The default is `failed`.
    #[schema(min_length = 1)]
    error_code: Option<String>,
    /// The error message (failed) or the reason (snoozed). The first 10,000 characters are kept.
    message: Option<String>,
    /// Whether another attempt may succeed (failed). The default is `true`.
    retryable: Option<bool>,
    /// Delay before the job can be claimed again, in milliseconds (snoozed; failed: if it is longer than the backoff). At most a hundred
    /// years; longer delays are reduced to that.
    delay_ms: Option<u64>,
    /// How long the job waits before it is retried (failed). The default is 1 s, doubled with each failure, up to an hour.
    backoff: Option<Backoff>,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// The job is done.
    Succeeded,
    /// The run failed. It is retried if attempts are left and another attempt may succeed.
    Failed,
    /// The job is returned to its queue; the attempt does not count.
    Snoozed,
    /// The run stopped because of a request to cancel it.
    Canceled,
    /// The run stopped because of a request to abort it.
    Aborted,
}

/// The results, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct FinishAnswer {
    /// One result for each run.
    runs: Vec<Told>,
}

/// The result of reporting the end of a run.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// The end was stored.
    Accepted,
    /// The end had been stored before: a response was lost.
    Repeated,
    /// The worker no longer holds the job; nothing was changed.
    Fenced,
    /// An open transaction of another program holds the job, its group or its batch; nothing was changed. Send this end again in a second.
    Held,
}

impl From<Finished> for Told {
    fn from(finished: Finished) -> Self {
        match finished {
            Finished::Accepted => Self::Accepted,
            Finished::Repeated => Self::Repeated,
            Finished::Fenced => Self::Fenced,
            Finished::Held => Self::Held,
        }
    }
}

/// End runs
///
/// All in one transaction, except those with the result `held`, which must be sent again. The request can be repeated safely: ends that were
/// stored before get the result `repeated`.
#[utoipa::path(
    post, path = "/v1/workers/{id}/finish", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = FinishRequest, responses((status = 200, body = FinishAnswer)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn finish_runs(
    app: App,
    Path(worker): Path<WorkerId>,
    Body(request): Body<FinishRequest>,
) -> Result<Json<FinishAnswer>, Problem> {
    page::check_count(request.runs.len(), RUNS_MAX, "runs")?;
    check_once(request.runs.iter().map(|end| end.run.run.job), "each job may occur only once")?;
    let finishes: Vec<Finish> =
        request.runs.into_iter().enumerate().map(RunEnd::into_finish).collect::<Result<_, _>>()?;
    let finished = app.store.finish_many(worker, &finishes).await?;
    app.tally.ended(&finishes, &finished);
    Ok(Json(FinishAnswer { runs: finished.into_iter().map(Told::from).collect() }))
}

/// Refuses a job that occurs twice in a request.
fn check_once(jobs: impl Iterator<Item = JobId>, words: &str) -> Result<(), Problem> {
    let mut seen = HashSet::new();
    for (index, job) in jobs.enumerate() {
        if !seen.insert(job) {
            return Err(Problem::new(Code::RunTwice, words).at(format!("runs[{index}]")));
        }
    }
    Ok(())
}

impl RunEnd {
    /// Returns the end for the store. `index`: its position in the request.
    fn into_finish((index, end): (usize, Self)) -> Result<Finish, Problem> {
        let Handle { run, grouped, task, .. } = end.run;
        let policy = match end.backoff {
            Some(backoff) => backoff.policy(|| format!("runs[{index}].backoff"))?,
            None => RetryPolicy::default(),
        };
        Ok(Finish { run, grouped, task, end: end.into_end(policy) })
    }

    fn into_end(self, policy: RetryPolicy) -> End {
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
                match policy.after_failure(attempt, max_attempts, retryable, delay, fastrand::f64()) {
                    (Verb::Retry, delay) => End::Retry { delay, failure },
                    _ => End::Fail { failure },
                }
            }
        }
    }
}

/// A result that cannot be stored fails its run, but no other run of the request.
fn success(result: Option<Box<RawValue>>, is_task: bool) -> End {
    let result = result.map(|result| result.get().to_owned());
    match result.as_deref().map_or(Ok(()), |result| check_result(result, is_task)) {
        Ok(()) => End::Succeed { result },
        Err(failure) => End::Fail { failure },
    }
}

/// Truncates a text to `chars_max` characters, so that a failure with a long message can be stored.
fn beginning(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
    }
    text
}

/// Progress and checkpoints of runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReportRequest {
    /// The runs. Each job must occur only once.
    #[schema(min_items = 1, max_items = 1000)]
    runs: Vec<RunReport>,
}

/// The progress and the checkpoint of a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunReport {
    /// The identifier of the run, from its claim.
    #[schema(value_type = String)]
    run: Handle,
    /// The progress, as shown to operators.
    progress: Option<Progress>,
    /// The checkpoint, from which the next attempt can continue.
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<Box<RawValue>>,
}

/// The results, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct ReportAnswer {
    /// Whether each report was stored. `false`: the worker no longer holds the job.
    accepted: Vec<bool>,
}

/// Report progress and checkpoints
///
/// The job's next attempt receives the checkpoint. If a checkpoint cannot be stored, the answer is an error that names the first such run; the
/// reports of the other runs are stored.
#[utoipa::path(
    post, path = "/v1/workers/{id}/report", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = ReportRequest, responses((status = 200, body = ReportAnswer)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn report_runs(
    app: App,
    Path(_worker): Path<WorkerId>,
    Body(request): Body<ReportRequest>,
) -> Result<Json<ReportAnswer>, Problem> {
    page::check_count(request.runs.len(), RUNS_MAX, "runs")?;
    check_once(request.runs.iter().map(|report| report.run.run.job), "each job may occur only once")?;
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
    let (mut good, mut refused) = (Vec::with_capacity(reports.len()), None);
    for (index, report) in reports.into_iter().enumerate() {
        match report.checkpoint.as_deref().map_or(Ok(()), check_checkpoint) {
            Ok(()) => good.push(report),
            Err(why) => {
                let problem = || {
                    let words = format!("{why}; the other reports of the call are not affected");
                    Problem::new(Code::InvalidCheckpoint, words).at(format!("runs[{index}].checkpoint"))
                };
                refused.get_or_insert_with(problem);
            }
        }
    }
    let accepted = app.store.report_many(&good).await?;
    refused.map_or(Ok(Json(ReportAnswer { accepted })), Err)
}
