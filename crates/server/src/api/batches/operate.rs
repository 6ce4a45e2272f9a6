//! Operations on a batch.

use std::time::Duration;

use axum::Json;
use milepost_core::actions::GRACE_DEFAULT;
use milepost_core::actions::batch::BatchAction;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::rerun::Chosen;
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
use crate::api::operate::grace_default_ms;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(operate_batch))
}

/// The operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchOperateRequest {
    /// The operation.
    operation: BatchAction,
    /// Keys of tasks; for items of a list, their indices, from 0. Cancel: these tasks and everything downstream, instead of the whole batch.
    /// Mark: exactly one task. Rerun: these tasks; must be empty with `failed`.
    #[serde(default)]
    tasks: Vec<String>,
    /// The new state of the task: `succeeded`, `skipped` or `failed` (mark).
    state: Option<TaskState>,
    /// Whether everything downstream of the tasks runs again, too (rerun).
    #[serde(default)]
    downstream: bool,
    /// Whether all failed and aborted tasks run again, including those in lists and inner batches (rerun).
    #[serde(default)]
    failed: bool,
    /// The version of its DAG in which the tasks run again (rerun). The default is `pinned`.
    version: Option<InVersion>,
    /// Returns a preview and changes nothing (rerun).
    #[serde(default)]
    dry: bool,
    /// The expected generation of the batch. If it has changed, the operation is refused.
    generation: Option<u32>,
    /// Grace period for running jobs to stop, in milliseconds (abort, cancel).
    #[schema(default = grace_default_ms)]
    grace_ms: Option<u64>,
    /// The reason, for the batch's history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct BatchOperateAnswer {
    /// The effect of the operation. Missing in a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    operated: Option<BatchOperated>,
    /// The tasks that run again (rerun).
    #[serde(skip_serializing_if = "Option::is_none")]
    rerun: Option<Preview>,
}

/// Operate on a batch
///
/// Abort, resume, cancel or rerun it, or mark a task. A rerun with `dry` returns the tasks that would run and changes nothing.
/// 409 when the state does not allow the operation.
#[utoipa::path(
    post, path = "/v1/batches/{id}/operate", tag = "batches", params(("id" = BatchId, Path, description = "The batch")),
    request_body = BatchOperateRequest, responses((status = 200, body = BatchOperateAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn operate_batch(
    app: App,
    actor: RequestActor,
    Path(id): Path<BatchId>,
    Body(request): Body<BatchOperateRequest>,
) -> Result<Json<BatchOperateAnswer>, Problem> {
    request.check()?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let store = store.as_ref();
    let permit = app.large.permit().await;
    let subject = subject(&permit, id, store).await?;
    let (what, rerun) = match request.operation {
        BatchAction::Abort => (BatchVerb::Abort, None),
        BatchAction::Resume => (BatchVerb::Resume, None),
        BatchAction::Cancel => {
            (BatchVerb::Cancel { tasks: subject.cancel_set(&request.numbers(&subject)?) }, None)
        }
        BatchAction::Mark => (request.mark(&subject)?, None),
        BatchAction::Rerun => {
            let version = request.version.unwrap_or_default();
            let plan = plan(&permit, &request.chosen(), version, &subject, store).await?;
            (plan.verb(), Some(Preview::of(&plan)))
        }
    };
    // The operation may wait for locks, and nothing large should wait for it.
    drop(permit);
    if request.dry {
        return Ok(Json(BatchOperateAnswer { operated: None, rerun }));
    }
    let operation = BatchOperation {
        batch: id,
        // The generation that was read here, unless the request specifies one.
        generation: Some(request.generation.unwrap_or(subject.row.generation)),
        grace: request.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis),
        note: request.reason,
        what,
    };
    let operated = store.operate_batch(&operation).await?;
    Ok(Json(BatchOperateAnswer { operated: Some(operated), rerun }))
}

fn refused(at: &str, words: &str) -> Problem {
    Problem::new(Code::InvalidBody, words).at(at)
}

impl BatchOperateRequest {
    /// Returns the tasks that the request asks to rerun.
    fn chosen(&self) -> Chosen {
        match (self.failed, self.downstream) {
            (true, _) => Chosen::Failed,
            (false, true) => Chosen::Downstream(self.tasks.clone()),
            (false, false) => Chosen::Tasks(self.tasks.clone()),
        }
    }

    /// Refuses fields that do not apply to the operation.
    fn check(&self) -> Result<(), Problem> {
        use BatchAction::{Abort, Cancel, Mark, Rerun, Resume};
        let of = |given: bool, operations: &[BatchAction], at: &str| {
            if given && !operations.contains(&self.operation) {
                return Err(refused(at, "it does not apply to this operation; omit it"));
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
            Mark if self.tasks.len() != 1 => Err(refused("tasks", "a mark needs exactly one task")),
            Rerun if self.failed != self.tasks.is_empty() => {
                Err(refused("tasks", "a rerun needs either tasks or failed; give one of the two"))
            }
            Rerun if self.failed && self.downstream => Err(refused(
                "downstream",
                "tasks downstream of a failed task wait for it and continue automatically; omit downstream",
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
        let state =
            state.ok_or_else(|| refused("state", "a mark needs a state: succeeded, skipped or failed"))?;
        let numbers = self.numbers(subject)?;
        let [task] = numbers.as_slice() else {
            return Err(refused("tasks", "a mark needs exactly one task"));
        };
        Ok(BatchVerb::Mark { task: *task, state })
    }
}
