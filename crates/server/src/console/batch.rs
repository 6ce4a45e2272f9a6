//! `/batches/{id}`: one batch: its graph, what failed, what takes longest, and what can be done.

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::batch::listing::{BatchDetail, BatchEntry, BatchView, TaskView};
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use serde::Deserialize;

use super::act::{Action, Field, Sent, acting};
use super::batches::progress;
use super::board::{Board, ran};
use super::flash::Flash;
use super::graph::{self, Level};
use super::page::{Drawn, Page, draw};
use super::stack::{Stack, by_state};
use super::words::{count, encoded, length, pretty, several};
use crate::app::App;
use crate::params::{Path, Query};
use crate::problem::Problem;

/// How many tasks are listed.
const TASKS: usize = 100;
/// How many steps of the longest way are told.
const STEPS: usize = 12;
/// How many changes are shown.
const ENTRIES: u32 = 100;
/// How long running jobs get to stop by themselves.
const GRACE: Duration = Duration::from_secs(10);

/// Which tasks are listed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    level: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    task: String,
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
    stack: Stack,
    counts: Vec<(&'static str, String)>,
    input: String,
    may_have_failed: bool,
    /// Whether its tasks are known yet.
    is_read: bool,
    drawing: Option<String>,
    levels: Vec<Level>,
    path: Vec<(String, String)>,
    path_took: String,
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
    /// When something happened to it last.
    at: Option<Timestamp>,
    actions: Vec<Action>,
}

pub(super) async fn show(
    State(app): State<App>,
    Path(id): Path<BatchId>,
    Query(chosen): Query<Chosen>,
    page: Page,
) -> Drawn {
    let detail = app.store.batch(id).await?;
    let detail = detail.ok_or_else(|| {
        Problem::not_found("no_such_batch", format!("There is no batch {id}, or it was forgotten."))
    })?;
    let (board, history) =
        tokio::join!(app.known.board(id, &app.store), app.store.last_of_batch(id, ENTRIES + 1));
    let (board, row) = (board?, &detail.row);
    let url = format!("/batches/{id}");
    let path = board.as_ref().map(|board| board.critical_path(page.now)).unwrap_or_default();
    let numbers: Vec<u32> = path.iter().map(|(number, _)| *number).collect();
    let key = |number: u32| {
        let task = board.as_ref().and_then(|board| board.task(number));
        task.map_or_else(|| number.to_string(), |task| task.key.clone())
    };
    let drawing = board.as_ref().and_then(|board| graph::draw(board, &url, &numbers));
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
        stack: Stack::of_tasks(&row.counts),
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

/// Whether a task has failed or was aborted, or may have in a batch that a task is.
fn may_have_failed(row: &BatchView, board: Option<&Board>) -> bool {
    let goes_inside = |board: &Board| {
        board.tasks.iter().any(|task| task.batch.is_some() && task.state == TaskState::Active)
    };
    row.counts.failed + row.counts.aborted > 0 || board.is_some_and(goes_inside)
}

/// The tasks that were asked for, else those that need somebody, else those under way, and what they are.
fn list(board: &Board, chosen: &Chosen, url: &str) -> (String, Vec<TaskView>, Option<String>) {
    let layer = chosen.level.parse::<u32>().ok();
    let state = chosen.state.parse::<TaskState>().ok();
    let after = chosen.after.parse::<u32>().ok();
    let fits = |task: &&TaskView| {
        let in_layer = layer.is_none_or(|layer| {
            board.dag.as_ref().is_some_and(|dag| {
                (task.task as usize) < dag.graph().len() && dag.graph().layer(task.task) == layer
            })
        });
        let named = chosen.task.is_empty() || task.key == chosen.task;
        in_layer
            && named
            && state.is_none_or(|state| task.state == state)
            && after.is_none_or(|after| task.task > after)
    };
    let asked = layer.is_some() || state.is_some() || !chosen.task.is_empty() || after.is_some();
    let (words, mut tasks): (String, Vec<&TaskView>) = if asked {
        let mut words = vec!["Tasks".to_owned()];
        words.extend(layer.map(|layer| format!("of level {layer}")));
        words.extend(state.map(|state| format!("that are {state}")));
        words.extend(Some(&chosen.task).filter(|key| !key.is_empty()).map(|key| format!("called {key}")));
        (words.join(" "), board.tasks.iter().filter(fits).take(TASKS + 1).collect())
    } else {
        let in_state = |states: &[TaskState]| -> Vec<&TaskView> {
            board.tasks.iter().filter(|task| states.contains(&task.state)).take(TASKS + 1).collect()
        };
        let needy = in_state(&[TaskState::Failed, TaskState::Aborted]);
        let (words, tasks) = if needy.is_empty() {
            ("Tasks under way", in_state(&[TaskState::Active, TaskState::Due]))
        } else {
            ("Tasks that need somebody", needy)
        };
        let first = if tasks.len() > TASKS { format!(", the first {TASKS}") } else { String::new() };
        (format!("{words}{first}"), tasks)
    };
    let more = tasks.len() > TASKS;
    tasks.truncate(TASKS);
    let next = tasks.last().filter(|_| more && asked).map(|last| {
        let after = last.task.to_string();
        let query =
            super::words::query(&[("level", &chosen.level), ("state", &chosen.state), ("after", &after)]);
        format!("{url}?{query}#tasks")
    });
    (words, tasks.into_iter().cloned().collect(), next)
}

fn task(view: TaskView, place: usize, row: &BatchView, page: &Page) -> Task {
    let again = format!("/batches/{}/rerun?what=downstream&task={}", row.id, encoded(&view.key));
    let mut actions = Vec::new();
    if page.viewer.operates && !view.state.is_ended() {
        let act = |deed: &'static str, label| {
            operation(row, page, deed, label).with(Field::hidden("task", &view.key)).danger().among(place)
        };
        if matches!(view.state, TaskState::Failed | TaskState::Aborted) {
            actions.push(act("mark", "Mark as done").asks(
                format!("Take {} as done?", view.key),
                "What comes after it goes on as if it had succeeded.",
            ));
        }
        actions
            .push(act("cancel", "Cancel").asks(format!("Give {} up?", view.key), "And what comes after it."));
    }
    let took = ran(&view, page.now);
    let at = view.ended_at.or(view.started_at).or(view.released_at);
    Task { at, ran: if took.is_zero() { String::new() } else { length(took) }, again, actions, view }
}

/// A form that does something to the batch as it was looked at.
fn operation(row: &BatchView, page: &Page, deed: &'static str, label: &'static str) -> Action {
    Action::new(page, deed, format!("/batches/{}/operate", row.id), label)
        .with(Field::hidden("deed", deed))
        .with(Field::hidden("generation", row.generation.to_string()))
        .with_reason()
}

/// What can be done to a batch as a whole.
pub(super) fn actions(row: &BatchView, page: &Page) -> Vec<Action> {
    let mut actions = Vec::new();
    if !page.viewer.operates || row.state.is_ended() {
        return actions;
    }
    if row.stopped {
        actions.push(
            operation(row, page, "resume", "Resume").asks("Let this batch go on?", "Where it was stopped."),
        );
    } else {
        let effect = "Nothing of it starts any more until it is resumed; what runs is asked to stop, and after 10 s its workers lose it.";
        actions.push(operation(row, page, "abort", "Abort").asks("Stop this batch?", effect).danger());
    }
    let effect = "All tasks that have not ended are given up; those that clear up may still run.";
    actions.push(operation(row, page, "cancel-all", "Cancel").asks("Give this batch up?", effect).danger());
    actions
}

/// Where a batch stands, and what that means.
pub(super) fn standing(row: &BatchView) -> String {
    let counts = &row.counts;
    let failed = several(counts.failed, "task", "tasks");
    match row.state {
        BatchState::Running if row.stopped => "asked to stop, and waits for what still runs".to_owned(),
        BatchState::Running if counts.failed > 0 => format!("some go on, {failed} failed"),
        BatchState::Failed if counts.waiting > 0 => {
            format!("{failed} failed, and {} for that", several(counts.waiting, "waits", "wait"))
        }
        BatchState::Failed => format!("{failed} failed, all others have ended"),
        BatchState::Aborted if row.stopped => "nothing starts until it is resumed".to_owned(),
        BatchState::Aborted => {
            format!("{} aborted, and nothing else can go on", several(counts.aborted, "task", "tasks"))
        }
        BatchState::Canceled => format!("{} canceled", several(counts.canceled, "task", "tasks")),
        _ => String::new(),
    }
}

/// Does something to the batch.
pub(super) async fn operate(State(app): State<App>, Path(id): Path<BatchId>, sent: Sent) -> Response {
    let done = async {
        let (reason, generation) = (sent.reason()?, sent.read("generation")?);
        let board = Board::read(id, app.store.clone()).await?;
        let named = |name| {
            let key = sent.needed(name)?;
            board
                .number(key)
                .ok_or_else(|| Flash::refused(format!("nothing was done: there is no task {key}")))
        };
        let what = match sent.needed("deed")? {
            "abort" => BatchVerb::Abort,
            "resume" => BatchVerb::Resume,
            "mark" => BatchVerb::Mark { task: named("task")?, state: TaskState::Succeeded },
            "cancel" => BatchVerb::Cancel { tasks: cancel_set(&board, Some(named("task")?)) },
            "cancel-all" => BatchVerb::Cancel { tasks: cancel_set(&board, None) },
            other => {
                return Err(Flash::refused(format!("nothing was done: {other:?} cannot be done to a batch")));
            }
        };
        let operation = BatchOperation { batch: id, generation, grace: GRACE, note: Some(reason), what };
        let operated = acting(&app, &sent).operate_batch(&operation).await?;
        let stopping = match operated.stopping {
            0 => String::new(),
            running => format!("; {} that run were asked to stop", count(running)),
        };
        Ok(format!("Done: {} changed{stopping}.", several(operated.changed, "task", "tasks")))
    };
    let done = done.await;
    sent.answer(done)
}

/// The tasks that a cancel gives up: all but those that clear up, or those from one on.
fn cancel_set(board: &Board, from: Option<u32>) -> Vec<u32> {
    match (&board.dag, from) {
        (Some(dag), Some(task)) => dag.cancel_set(&[task]),
        (Some(dag), None) => dag.cancel_set(&dag.graph().roots().collect::<Vec<_>>()),
        (None, Some(item)) => vec![item],
        (None, None) => board.tasks.iter().map(|task| task.task).collect(),
    }
}
