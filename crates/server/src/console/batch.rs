//! `/batches/{id}`: a batch with its graph, tasks, critical path and actions.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::batch::BatchAction;
use milepost_core::actions::{Action as _, GRACE_DEFAULT};
use milepost_core::batch::listing::{BatchDetail, BatchEntry, BatchView, TaskFilter, TaskView};
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use serde::Deserialize;

use super::batch_tasks::{BatchTasks, ran};
use super::batches::progress;
use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::{count, length, pretty, several};
use super::graph::{self, Level};
use super::page::{Drawn, Page, draw};
use super::state_bar::{StateBar, by_state};
use super::timeline::Timeline;
use super::waits::{self, Waiting};
use crate::api::batches::{all_tasks, subject};
use crate::app::App;
use crate::params::{Path, Query, encoded};
use crate::problem::{Code, Problem};

/// Number of tasks read by one query.
const PORTION: u32 = 5_000;
/// Maximum number of listed tasks.
const TASKS: usize = 100;
/// Maximum number of displayed steps of the critical path.
const STEPS: usize = 12;
/// Maximum number of displayed state transitions.
const ENTRIES: u32 = 100;

/// The filter of the task list.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    level: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    task: String,
    /// A part of the key.
    #[serde(default)]
    key: String,
    #[serde(default)]
    after: String,
}

#[derive(Template)]
#[template(path = "batch.html")]
struct Batch {
    page: Page,
    detail: BatchDetail,
    standing: String,
    progress: String,
    stack: StateBar,
    counts: Vec<(&'static str, String)>,
    input: String,
    may_have_failed: bool,
    /// Whether its tasks have been read.
    is_read: bool,
    drawing: Option<String>,
    levels: Vec<Level>,
    path: Vec<(String, String)>,
    path_took: String,
    timeline: Timeline,
    /// The tasks that wait for a signal or a time.
    waits: Vec<Waiting>,
    /// The states that tasks can be filtered by, and the filter.
    states: &'static [TaskState],
    chosen: Chosen,
    listed: String,
    tasks: Vec<Task>,
    next: Option<String>,
    history: Vec<BatchEntry>,
    /// Whether there are older entries.
    older: bool,
    actions: Vec<Action>,
}

struct Task {
    view: TaskView,
    ran: String,
    again: String,
    /// Time of its last change.
    at: Option<Timestamp>,
    actions: Vec<Action>,
}

pub(super) async fn show(
    app: App,
    Path(id): Path<BatchId>,
    Query(chosen): Query<Chosen>,
    page: Page,
) -> Drawn {
    let detail = app.store.batch(id).await?;
    let detail = detail.ok_or_else(|| {
        Problem::new(Code::NoSuchBatch, format!("There is no batch {id}, or it was deleted."))
    })?;
    let (board, history) =
        tokio::join!(app.known.board(id, read(id, app.clone())), app.store.last_of_batch(id, ENTRIES + 1));
    let (board, row) = (board?, &detail.row);
    let url = format!("/batches/{id}");
    let path = board.as_ref().map(|board| board.critical_path(page.now)).unwrap_or_default();
    let numbers: Vec<u32> = path.iter().map(|(number, _)| *number).collect();
    let key = |number: u32| {
        let task = board.as_ref().and_then(|board| board.task(number));
        task.map_or_else(|| number.to_string(), |task| task.key.clone())
    };
    let drawing = board.as_ref().and_then(|board| {
        let state = |task: u32| Some(board.state(task));
        graph::draw(board.graph.as_ref()?, &format!("{url}?"), state, &numbers)
    });
    let levels = match (&board, &drawing) {
        (Some(board), None) => graph::levels(board),
        _ => Vec::new(),
    };
    let (listed, tasks, next) =
        board.as_ref().map_or_else(Default::default, |board| list(board, &chosen, &url));
    let mut history = history?;
    let older = history.len() > ENTRIES as usize;
    history.truncate(ENTRIES as usize);
    let batch = Batch {
        standing: standing(row),
        progress: progress(&row.counts),
        stack: StateBar::of_tasks(&row.counts),
        counts: by_state(&row.counts)
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(state, number)| (state.as_str(), count(number)))
            .collect(),
        may_have_failed: may_have_failed(row, board.as_deref()),
        input: pretty(detail.input.get()),
        is_read: board.is_some(),
        drawing,
        levels,
        waits: board.as_ref().map(|board| waits::waiting(board, row, &page)).unwrap_or_default(),
        timeline: board.as_ref().map(|board| Timeline::of(&board.tasks, page.now)).unwrap_or_default(),
        states: TaskState::ALL,
        path_took: length(path.iter().map(|(_, took)| *took).sum()),
        path: path
            .iter()
            .rev()
            .take(STEPS)
            .rev()
            .map(|(number, took)| (key(*number), length(*took)))
            .collect(),
        listed,
        tasks: tasks.into_iter().enumerate().map(|(place, view)| task(view, place, row, &page)).collect(),
        next,
        history,
        older,
        actions: actions(row, &page),
        chosen,
        detail,
        page,
    };
    Ok(draw(&batch))
}

impl Batch {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

/// Reads a batch with all its tasks.
async fn read(id: BatchId, app: App) -> Result<Arc<BatchTasks>, Problem> {
    let graph = {
        let permit = app.large.permit().await;
        let subject = subject(&permit, id, app.store.as_ref()).await?;
        subject.dag.map(|dag| dag.graph().clone())
    };
    let tasks =
        all_tasks(id, TaskFilter { limit: PORTION, ..TaskFilter::default() }, app.store.as_ref()).await?;
    Ok(Arc::new(BatchTasks { graph, tasks }))
}

/// Returns whether a task has failed or was aborted, or may have been within an inner batch.
fn may_have_failed(row: &BatchView, board: Option<&BatchTasks>) -> bool {
    let goes_inside = |board: &BatchTasks| {
        board.tasks.iter().any(|task| task.batch.is_some() && task.state == TaskState::Active)
    };
    row.counts.failed + row.counts.aborted > 0 || board.is_some_and(goes_inside)
}

/// Lists the selected tasks. Without a selection: failed and aborted tasks, or else tasks in progress. Also returns the heading
/// and the next page.
fn list(board: &BatchTasks, chosen: &Chosen, url: &str) -> (String, Vec<TaskView>, Option<String>) {
    let layer = chosen.level.parse::<u32>().ok();
    let state = chosen.state.parse::<TaskState>().ok();
    let after = chosen.after.parse::<u32>().ok();
    let fits = |task: &&TaskView| {
        let in_layer = layer.is_none_or(|layer| {
            board
                .graph
                .as_ref()
                .is_some_and(|graph| (task.task as usize) < graph.len() && graph.layer(task.task) == layer)
        });
        let named = (chosen.task.is_empty() || task.key == chosen.task) && task.key.contains(&chosen.key);
        in_layer
            && named
            && state.is_none_or(|state| task.state == state)
            && after.is_none_or(|after| task.task > after)
    };
    let asked = layer.is_some()
        || state.is_some()
        || !chosen.task.is_empty()
        || !chosen.key.is_empty()
        || after.is_some();
    let (words, mut tasks): (String, Vec<&TaskView>) = if asked {
        let mut words = vec!["Tasks".to_owned()];
        words.extend(layer.map(|layer| format!("of level {layer}")));
        words.extend(state.map(|state| format!("in state {state}")));
        words.extend(Some(&chosen.task).filter(|key| !key.is_empty()).map(|key| format!("with key {key}")));
        words.extend(
            Some(&chosen.key).filter(|key| !key.is_empty()).map(|key| format!("whose key contains {key}")),
        );
        (words.join(" "), board.tasks.iter().filter(fits).take(TASKS + 1).collect())
    } else {
        let in_state = |states: &[TaskState]| -> Vec<&TaskView> {
            board.tasks.iter().filter(|task| states.contains(&task.state)).take(TASKS + 1).collect()
        };
        let needy = in_state(&[TaskState::Failed, TaskState::Aborted]);
        let (words, tasks) = if needy.is_empty() {
            ("Tasks in progress", in_state(&[TaskState::Active, TaskState::Due]))
        } else {
            ("Tasks that need attention", needy)
        };
        let first = if tasks.len() > TASKS { format!(", the first {TASKS}") } else { String::new() };
        (format!("{words}{first}"), tasks)
    };
    let more = tasks.len() > TASKS;
    tasks.truncate(TASKS);
    let next = tasks.last().filter(|_| more && asked).map(|last| {
        let after = last.task.to_string();
        let query = super::format::query(&[
            ("level", &chosen.level),
            ("state", &chosen.state),
            ("key", &chosen.key),
            ("after", &after),
        ]);
        format!("{url}?{query}#tasks")
    });
    (words, tasks.into_iter().cloned().collect(), next)
}

fn task(view: TaskView, place: usize, row: &BatchView, page: &Page) -> Task {
    let again = format!("/batches/{}/rerun?what=downstream&task={}", row.id, encoded(&view.key));
    let mut actions = Vec::new();
    if page.viewer.operates && !view.state.is_ended() {
        let form = |action: BatchAction| {
            operation(row, page, action).with(Field::hidden("task", &view.key)).among(place)
        };
        if matches!(view.state, TaskState::Failed | TaskState::Aborted) || view.wait.is_some() {
            let question = format!("{} {}?", BatchAction::Mark.title(), view.key);
            actions.push(form(BatchAction::Mark).asks(question));
        }
        let question = format!("Cancel {} and all its downstream tasks?", view.key);
        actions.push(form(BatchAction::Cancel).asks(question));
    }
    let took = ran(&view, page.now);
    let at = view.ended_at.or(view.started_at).or(view.released_at);
    Task { at, ran: if took.is_zero() { String::new() } else { length(took) }, again, actions, view }
}

/// Creates a form for an operation on the batch at the displayed generation.
fn operation(row: &BatchView, page: &Page, action: BatchAction) -> Action {
    Action::new(page, action.as_str(), format!("/batches/{}/operate", row.id), action)
        .with(Field::hidden("generation", row.generation.to_string()))
}

/// Returns the actions for the whole batch.
pub(super) fn actions(row: &BatchView, page: &Page) -> Vec<Action> {
    if !page.viewer.operates || row.state.is_ended() {
        return Vec::new();
    }
    let first = if row.stopped { BatchAction::Resume } else { BatchAction::Abort };
    let form =
        |action: BatchAction| operation(row, page, action).asks(format!("{} this batch?", action.title()));
    [first, BatchAction::Cancel].map(form).into()
}

/// Describes the state of a batch.
pub(super) fn standing(row: &BatchView) -> String {
    let counts = &row.counts;
    let failed = several(counts.failed, "task", "tasks");
    match row.state {
        BatchState::Running if row.stopped => "asked to stop; waits for running jobs".to_owned(),
        BatchState::Running if counts.failed > 0 => format!("{failed} failed; others continue"),
        BatchState::Failed if counts.waiting > 0 => {
            format!("{failed} failed; {} for them", several(counts.waiting, "task waits", "tasks wait"))
        }
        BatchState::Failed => format!("{failed} failed, all others have ended"),
        BatchState::Aborted if row.stopped => "nothing starts until it is resumed".to_owned(),
        BatchState::Aborted => {
            format!("{} aborted; no other task can continue", several(counts.aborted, "task", "tasks"))
        }
        BatchState::Canceled => format!("{} canceled", several(counts.canceled, "task", "tasks")),
        _ => String::new(),
    }
}

/// Performs an operation on the batch.
pub(super) async fn operate(app: App, Path(id): Path<BatchId>, sent: Sent) -> Response {
    let done = async {
        let (reason, generation) = (sent.reason()?, sent.read("generation")?);
        let subject = {
            let permit = app.large.permit().await;
            subject(&permit, id, app.store.as_ref()).await?
        };
        let named = |name| {
            let refused = |invalid| Flash::refused(format!("nothing was done: {invalid}"));
            subject.task(sent.needed(name)?).map_err(refused)
        };
        let task = sent.field("task").is_some().then(|| named("task")).transpose()?;
        let what = match (sent.operation()?, task) {
            (BatchAction::Abort, _) => BatchVerb::Abort,
            (BatchAction::Resume, _) => BatchVerb::Resume,
            (BatchAction::Mark, Some(task)) => BatchVerb::Mark { task, state: TaskState::Succeeded },
            (BatchAction::Cancel, task) => BatchVerb::Cancel { tasks: subject.cancel_set(task.as_slice()) },
            (BatchAction::Mark, None) => return Err(Flash::refused("nothing was done: task is missing")),
            (BatchAction::Rerun, _) => {
                return Err(Flash::refused("nothing was done: a rerun starts from its preview"));
            }
        };
        let (grace, note) = (GRACE_DEFAULT, Some(reason));
        let operation = BatchOperation { batch: id, generation, grace, note, what };
        let operated = acting(&app, &sent)?.operate_batch(&operation).await?;
        let stopping = match operated.stopping {
            0 => String::new(),
            running => format!("; asked {} to stop", several(running, "running job", "running jobs")),
        };
        Ok(format!("Done: {} changed{stopping}.", several(operated.changed, "task", "tasks")))
    };
    let done = done.await;
    sent.answer(done)
}
