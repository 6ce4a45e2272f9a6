//! `/batches/{id}/rerun`: what would run again is shown, then it runs again.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use milepost_core::batch::listing::{BatchView, TaskView, VersionView};
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::{Counts, TaskState};
use milepost_core::ident::BatchId;
use serde::Deserialize;

use super::act::{Action, Field, Sent, acting};
use super::board::Board;
use super::flash::Flash;
use super::page::{Drawn, Page, draw};
use super::stack::by_state;
use super::words::{count, encoded, several};
use crate::app::App;
use crate::params::{Path, Query};
use crate::problem::Problem;

/// How many names are told.
const NAMES: usize = 40;

/// What is to run again.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wanted {
    /// `failed`, `task` or `downstream`.
    what: String,
    #[serde(default)]
    task: String,
    /// `latest`: in the latest version of the DAG.
    #[serde(default)]
    version: String,
}

/// Which tasks run again, and in which version.
struct Plan {
    again: Vec<TaskView>,
    verb: BatchVerb,
    change: Option<Change>,
}

/// What another version is to the batch.
struct Change {
    to: VersionView,
    new: Vec<String>,
    gone: Vec<String>,
}

#[derive(Template)]
#[template(path = "rerun.html")]
struct Rerun {
    page: Page,
    row: BatchView,
    wanted: Wanted,
    change: Option<Change>,
    names: String,
    total: String,
    counts: Vec<(&'static str, String)>,
    /// What is in its way.
    hindrance: Option<String>,
    has_latest: bool,
    action: Option<Action>,
}

fn refused(words: impl Into<String>) -> Problem {
    Problem::unprocessable("invalid_rerun", words)
}

impl Wanted {
    /// What it comes to, as the batch stands.
    async fn plan(&self, row: &BatchView, board: &Arc<Board>, app: &App) -> Result<Plan, Problem> {
        let latest = match (&board.dag, self.version.as_str()) {
            (Some(_), "latest") => {
                let (to, definition) = app.store.dag(&row.dag, None).await?;
                (to.version != row.version).then_some((to, definition))
            }
            _ => None,
        };
        let Some((to, definition)) = latest else {
            let numbers = self.numbers(board.dag.as_ref(), |key| board.number(key))?;
            let again: Vec<TaskView> =
                board.tasks.iter().filter(|task| self.runs(task, &numbers)).cloned().collect();
            let verb = BatchVerb::Rerun { tasks: again.iter().map(|task| task.task).collect() };
            return Ok(Plan { again, verb, change: None });
        };
        let new = Dag::check(definition).map_err(|fault| refused(fault.to_string()))?;
        let named = self.numbers(Some(&new), |key| new.graph().task(key))?;
        let number = |task: &TaskView| new.graph().task(&task.key);
        let runs = |task: &&TaskView| {
            number(task).is_some_and(|there| {
                if self.what == "failed" { is_stuck(task) } else { named.contains(&there) }
            })
        };
        let again: Vec<TaskView> = board.tasks.iter().filter(runs).cloned().collect();
        let old = board.dag.as_ref().map(|dag| dag.graph().keys()).unwrap_or_default();
        let missing =
            |of: &[String], has: &dyn Fn(&str) -> bool| of.iter().filter(|key| !has(key)).cloned().collect();
        let change = Change {
            new: missing(new.graph().keys(), &|key| board.number(key).is_some()),
            gone: missing(old, &|key| new.graph().task(key).is_some()),
            to,
        };
        let verb = BatchVerb::RerunIn {
            version: change.to.version,
            tasks: again.iter().filter_map(number).collect(),
        };
        Ok(Plan { again, verb, change: Some(change) })
    }

    /// The numbers that are named; none where it is what failed.
    fn numbers(
        &self,
        dag: Option<&Dag>,
        number: impl Fn(&str) -> Option<u32>,
    ) -> Result<BTreeSet<u32>, Problem> {
        let named = || number(&self.task).ok_or_else(|| refused(format!("there is no task {:?}", self.task)));
        match (self.what.as_str(), dag) {
            ("failed", _) => Ok(BTreeSet::new()),
            ("downstream", Some(dag)) => Ok(dag.graph().downstream(&[named()?]).into_iter().collect()),
            ("task" | "downstream", _) => Ok(BTreeSet::from([named()?])),
            (other, _) => {
                Err(refused(format!("{other:?} is not what can run again; it is failed, task or downstream")))
            }
        }
    }

    fn runs(&self, task: &TaskView, numbers: &BTreeSet<u32>) -> bool {
        if self.what == "failed" { is_stuck(task) } else { numbers.contains(&task.task) }
    }
}

const fn is_stuck(task: &TaskView) -> bool {
    matches!(task.state, TaskState::Failed | TaskState::Aborted)
}

/// Shows what would run again.
pub(super) async fn preview(
    State(app): State<App>,
    Path(id): Path<BatchId>,
    Query(wanted): Query<Wanted>,
    page: Page,
) -> Drawn {
    let detail = app.store.batch(id).await?;
    let row = detail
        .ok_or_else(|| Problem::not_found("no_such_batch", format!("There is no batch {id}, or it was forgotten.")))?
        .row;
    let board = Board::read(id, Arc::clone(&app.store)).await?;
    let plan = wanted.plan(&row, &board, &app).await?;
    let counts: Counts = plan.again.iter().map(|task| task.state).collect();
    let active = if plan.change.is_some() { row.counts.active } else { counts.active };
    let hindrance = (active > 0).then(|| {
        format!(
            "{} under way: what runs cannot run again. Wait for them, or abort the batch first.",
            several(active, "task is", "tasks are")
        )
    });
    let nothing = plan.again.is_empty() && plan.change.is_none();
    let keys: Vec<&str> = plan.again.iter().take(NAMES).map(|task| task.key.as_str()).collect();
    let more = plan.again.len() - keys.len();
    let action = Action::new(&page, "rerun", format!("/batches/{id}/rerun"), "Run again")
        .asks("Run these tasks again?", "Each is decided anew when its predecessors have ended.")
        .with(Field::hidden("what", &wanted.what))
        .with(Field::hidden("task", &wanted.task))
        .with(Field::hidden("version", &wanted.version))
        .with(Field::hidden("generation", row.generation.to_string()))
        .with_reason();
    let rerun = Rerun {
        names: if more > 0 {
            format!("{} and {} more", keys.join(", "), count(more as u64))
        } else {
            keys.join(", ")
        },
        total: several(plan.again.len() as u64, "task runs", "tasks run"),
        counts: by_state(&counts)
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(state, number)| (state.as_str(), count(number)))
            .collect(),
        has_latest: board.dag.is_some() && wanted.version != "latest",
        action: (!nothing && hindrance.is_none()).then_some(action),
        hindrance,
        change: plan.change,
        wanted,
        row,
        page,
    };
    Ok(draw(&rerun))
}

impl Rerun {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

/// Runs them again.
pub(super) async fn rerun(State(app): State<App>, Path(id): Path<BatchId>, sent: Sent) -> Response {
    let done = async {
        let (reason, generation) = (sent.reason()?, sent.read("generation")?);
        let field = |name| sent.field(name).unwrap_or_default().to_owned();
        let wanted = Wanted { what: field("what"), task: field("task"), version: field("version") };
        let row =
            app.store.batch(id).await?.ok_or_else(|| Flash::refused(format!("there is no batch {id}")))?.row;
        let board = Board::read(id, Arc::clone(&app.store)).await?;
        let what = wanted.plan(&row, &board, &app).await?.verb;
        let operation = BatchOperation {
            batch: id,
            generation,
            grace: std::time::Duration::ZERO,
            note: Some(reason),
            what,
        };
        let operated = acting(&app, &sent).operate_batch(&operation).await?;
        Ok(format!(
            "Rerun {}: {} put back.",
            operated.generation.saturating_sub(1),
            several(operated.changed, "task", "tasks")
        ))
    };
    let done = done.await;
    sent.answer(done)
}
