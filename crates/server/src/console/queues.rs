//! `/queues`: queues with their jobs, workers and pause state.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::queue::QueueAction;
use milepost_core::job::check_queue;
use milepost_core::state::JobState;

use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::count;
use super::page::{Drawn, Page, draw};
use super::state_bar::StateBar;
use crate::app::App;
use crate::params::encoded;

#[derive(Template)]
#[template(path = "queues.html")]
struct Queues {
    page: Page,
    counted: bool,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    encoded: String,
    paused_at: Option<Timestamp>,
    /// Number of active workers that serve it.
    workers: usize,
    /// Whether jobs wait but no active worker serves the queue.
    forsaken: bool,
    waiting: String,
    counts: Vec<(&'static str, String)>,
    stack: StateBar,
    action: Option<Action>,
}

pub(super) async fn list(State(app): State<App>, page: Page) -> Drawn {
    let (queues, workers) = tokio::join!(app.known.queues(&app.store), app.store.workers());
    let (queues, workers) = (queues?, workers?);
    let serves = |name: &str| {
        let alive = workers.iter().filter(|worker| worker.ended_at.is_none());
        alive.filter(|worker| worker.queues.iter().any(|queue| queue == name)).count()
    };
    let counted = queues.is_some();
    let rows = queues.into_iter().flatten().enumerate().map(|(place, queue)| {
        let served = serves(&queue.name);
        let action = set_queue(&queue.name, QueueAction::to(queue.paused_at.is_none()), &page);
        let counts = queue.by_state();
        let some = counts.iter().filter(|(_, number)| *number > 0);
        Row {
            encoded: encoded(&queue.name),
            paused_at: queue.paused_at,
            workers: served,
            forsaken: served == 0 && queue.waiting() > 0,
            waiting: count(queue.waiting()),
            counts: some.map(|(state, number): &(JobState, i64)| (state.as_str(), count(*number))).collect(),
            stack: StateBar::of_jobs(&counts),
            action: action.map(|action| action.among(place)),
            name: queue.name,
        }
    });
    let rows = rows.collect();
    Ok(draw(&Queues { rows, counted, page }))
}

/// Pauses or resumes a queue.
pub(super) async fn set(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        let (queue, action): (&str, QueueAction) = (sent.needed("queue")?, sent.operation()?);
        check_queue(queue).map_err(|invalid| Flash::refused(invalid.to_string()))?;
        let changed = acting(&app, &sent)?.pause_queue(queue, action == QueueAction::Pause).await?;
        Ok(format!("Queue {queue} {}.", action.result(changed)))
    };
    let done = done.await;
    sent.answer(done)
}

/// The button that pauses or resumes a queue.
pub(super) fn set_queue(queue: &str, action: QueueAction, page: &Page) -> Option<Action> {
    let verb = if action == QueueAction::Pause { "Pause" } else { "Resume" };
    let form = Action::new(page, format!("{action}-{}", encoded(queue)), "/queues/set", action)
        .asks(format!("{verb} queue {queue}?"))
        .with(Field::hidden("queue", queue));
    page.viewer.operates.then_some(form)
}
