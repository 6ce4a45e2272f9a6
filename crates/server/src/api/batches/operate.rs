//! Doing something to a batch.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rerun::{InVersion, Preview, plan};
use super::subject::subject;
use crate::actor::RequestActor;
use crate::api::operate::GRACE_DEFAULT;
use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(operate_batch))
}

/// What is to be done, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchOperateRequest {
    /// What.
    operation: BatchOperationName,
    /// Keys of tasks; of items of a list their places, from 0. To cancel: these and all that comes after them, instead of the whole batch.
    /// To mark: one. To rerun: these, unless it is what has failed.
    #[serde(default)]
    pub(super) tasks: Vec<String>,
    /// How the task ended: `succeeded`, `skipped` or `failed` (mark).
    state: Option<TaskState>,
    /// Whether all that comes after the tasks runs again, too (rerun).
    #[serde(default)]
    pub(super) downstream: bool,
    /// Whether all tasks run again that have failed or were aborted, in lists and inner batches those that have there (rerun).
    #[serde(default)]
    pub(super) failed: bool,
    /// In which version of its DAG (rerun). The default is `pinned`.
    pub(super) version: Option<InVersion>,
    /// Only says what would be done (rerun).
    #[serde(default)]
    dry: bool,
    /// The generation of the batch that was looked at: with another one by now nothing is done.
    generation: Option<u32>,
    /// How long running jobs get to stop by themselves, in milliseconds (abort, cancel). The default is 10 seconds.
    grace_ms: Option<u64>,
    /// Why; stands in the batch's history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum BatchOperationName {
    /// Nothing starts any more, what runs is asked to stop; it can be resumed.
    Abort,
    /// It goes on where it was stopped.
    Resume,
    /// What has not ended is given up, but for tasks that clear up.
    Cancel,
    /// A task is taken for ended.
    Mark,
    /// Tasks run again, in a new generation.
    Rerun,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct BatchOperateAnswer {
    /// What was done. Missing: it was to be said only.
    #[serde(skip_serializing_if = "Option::is_none")]
    operated: Option<BatchOperated>,
    /// What runs again (rerun).
    #[serde(skip_serializing_if = "Option::is_none")]
    rerun: Option<Preview>,
}

/// Do something to a batch
///
/// Abort, resume, cancel, mark or rerun it. A rerun with `dry` says what would run and does nothing. 409 when its state does not allow it.
#[utoipa::path(
    post, path = "/v1/batches/{id}/operate", tag = "batches", params(("id" = BatchId, Path, description = "The batch")),
    request_body = BatchOperateRequest, responses((status = 200, body = BatchOperateAnswer)), security(("token" = ["operator"]))
)]
async fn operate_batch(
    State(app): State<App>,
    actor: RequestActor,
    Path(id): Path<BatchId>,
    Body(request): Body<BatchOperateRequest>,
) -> Result<Json<BatchOperateAnswer>, Problem> {
    request.check()?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let store = store.as_ref();
    let subject = subject(id, store).await?;
    let (what, rerun) = match request.operation {
        BatchOperationName::Abort => (BatchVerb::Abort, None),
        BatchOperationName::Resume => (BatchVerb::Resume, None),
        BatchOperationName::Cancel => {
            (BatchVerb::Cancel { tasks: subject.cancel_set(&request.numbers(&subject)?) }, None)
        }
        BatchOperationName::Mark => (request.mark(&subject)?, None),
        BatchOperationName::Rerun => {
            let plan = plan(&request.chosen(), request.version.unwrap_or_default(), &subject, store).await?;
            (plan.verb(), Some(Preview::of(&plan)))
        }
    };
    if request.dry {
        return Ok(Json(BatchOperateAnswer { operated: None, rerun }));
    }
    let operation = BatchOperation {
        batch: id,
        // What was looked at here, if the caller does not say.
        generation: Some(request.generation.unwrap_or(subject.row.generation)),
        grace: request.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis),
        note: request.reason,
        what,
    };
    let operated = store.operate_batch(&operation).await?;
    Ok(Json(BatchOperateAnswer { operated: Some(operated), rerun }))
}

fn refused(at: &str, words: &str) -> Problem {
    Problem::unprocessable("invalid_body", words).at(at)
}

impl BatchOperateRequest {
    /// Refuses what means nothing for the operation.
    fn check(&self) -> Result<(), Problem> {
        use BatchOperationName::{Abort, Cancel, Mark, Rerun, Resume};
        let of = |given: bool, operations: &[BatchOperationName], at: &str| {
            if given && !operations.contains(&self.operation) {
                return Err(refused(at, "it means nothing for this operation; leave it out"));
            }
            Ok(())
        };
        of(!self.tasks.is_empty(), &[Cancel, Mark, Rerun], "tasks")?;
        of(self.state.is_some(), &[Mark], "state")?;
        of(self.downstream, &[Rerun], "downstream")?;
        of(self.failed, &[Rerun], "failed")?;
        of(self.version.is_some(), &[Rerun], "version")?;
        of(self.dry, &[Rerun], "dry")?;
        of(self.grace_ms.is_some(), &[Abort, Cancel], "grace_ms")?;
        match self.operation {
            Mark if self.tasks.len() != 1 => Err(refused("tasks", "one task is marked at a time; name it")),
            Rerun if self.failed != self.tasks.is_empty() => Err(refused(
                "tasks",
                "a rerun is of tasks that are named, or of what has failed; give one of the two",
            )),
            Rerun if self.failed && self.downstream => Err(refused(
                "downstream",
                "what comes after a task that has failed waits for it, and goes on by itself",
            )),
            Abort | Resume | Cancel | Mark | Rerun => Ok(()),
        }
    }

    fn numbers(&self, subject: &Subject) -> Result<Vec<u32>, Problem> {
        let number = |(at, key): (usize, &String)| {
            let unknown = |error| Problem::from(StoreError::from(error)).at(format!("tasks[{at}]"));
            subject.task(key).map_err(unknown)
        };
        self.tasks.iter().enumerate().map(number).collect()
    }

    fn mark(&self, subject: &Subject) -> Result<BatchVerb, Problem> {
        let state = self
            .state
            .filter(|state| matches!(state, TaskState::Succeeded | TaskState::Skipped | TaskState::Failed));
        let state = state.ok_or_else(|| {
            refused("state", "a task is marked as succeeded, skipped or failed; give that state")
        })?;
        let numbers = self.numbers(subject)?;
        let [task] = numbers.as_slice() else {
            return Err(refused("tasks", "one task is marked at a time; name it"));
        };
        Ok(BatchVerb::Mark { task: *task, state })
    }
}
