//! `/queues`: queues with their jobs, workers and pause state.

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::queue::QueueAction;
use milepost_core::audit::AuditFilter;
use milepost_core::error::StoreError;
use milepost_core::job::check_queue;
use milepost_core::listing::QueueKinds;
use milepost_core::port::Store;
use milepost_core::state::JobState;

use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::{count, cut};
use super::page::{Drawn, Page, draw};
use super::state_bar::StateBar;
use crate::app::App;
use crate::params::encoded;

/// Maximum number of paused queues of which the reason is read.
const PAUSES_MAX: usize = 50;

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
    /// Who paused it, and why; only operators see it, as the audit log.
    paused_by: Option<String>,
    /// Number of active workers that serve it.
    workers: usize,
    /// Whether jobs wait but no active worker serves the queue.
    forsaken: bool,
    waiting: String,
    oldest_due_at: Option<Timestamp>,
    counts: Vec<(&'static str, String)>,
    stack: StateBar,
    action: Option<Action>,
}

pub(super) async fn list(app: App, page: Page) -> Drawn {
    let (queues, workers) = tokio::join!(app.known.queues(&app.store), app.store.workers());
    let (queues, workers) = (queues?, workers?);
    let serves = |name: &str| {
        let alive = workers.iter().filter(|worker| worker.is_active());
        alive.filter(|worker| worker.queues.iter().any(|queue| queue == name)).count()
    };
    let counted = queues.is_some();
    let queues = queues.unwrap_or_default();
    let pauses = pauses(&queues, &page, &app).await?;
    let longest = queues.iter().map(QueueKinds::jobs).max().unwrap_or_default();
    let rows = queues.into_iter().enumerate().map(|(place, queue)| {
        let served = serves(&queue.name);
        let paused_by = pauses.get(&queue.name).cloned();
        let action =
            set_queue(&queue.name, QueueAction::to(queue.paused_at.is_none()), &page).map(|action| {
                match &paused_by {
                    Some(who) => action.explains(&format!("It was paused by {who}.")),
                    None => action,
                }
            });
        let counts = queue.by_state();
        let some = counts.iter().filter(|(_, number)| *number > 0);
        Row {
            encoded: encoded(&queue.name),
            paused_at: queue.paused_at,
            paused_by,
            workers: served,
            forsaken: served == 0 && queue.waiting() > 0,
            waiting: count(queue.waiting()),
            oldest_due_at: queue.oldest_due_at(),
            counts: some.map(|(state, number): &(JobState, i64)| (state.as_str(), count(*number))).collect(),
            stack: StateBar::of_jobs(&counts, longest),
            action: action.map(|action| action.among(place)),
            name: queue.name,
        }
    });
    let rows = rows.collect();
    Ok(draw(&Queues { rows, counted, page }))
}

/// Returns for each paused queue who paused it, and why. Only operators see the audit log.
pub(super) async fn pauses(
    queues: &[QueueKinds],
    page: &Page,
    app: &App,
) -> Result<HashMap<String, String>, StoreError> {
    if !page.viewer.operates || queues.iter().all(|queue| queue.paused_at.is_none()) {
        return Ok(HashMap::new());
    }
    let _permit = app.large.permit().await;
    who_paused(queues, app.store.as_ref()).await
}

/// Returns for each paused queue who paused it, and why.
pub(super) async fn who_paused(
    queues: &[QueueKinds],
    store: &dyn Store,
) -> Result<HashMap<String, String>, StoreError> {
    let mut pauses = HashMap::new();
    let paused = queues.iter().filter(|queue| queue.paused_at.is_some()).map(|queue| &queue.name);
    for queue in paused.take(PAUSES_MAX) {
        let filter = AuditFilter {
            what: Some("queue.pause".to_owned()),
            subject: Some(queue.clone()),
            limit: 1,
            ..AuditFilter::default()
        };
        if let Some(pause) = store.audit_log(&filter).await?.pop() {
            let why = pause.why.map_or_else(String::new, |why| format!(": {}", cut(&why, 200)));
            pauses.insert(queue.clone(), format!("{}{why}", pause.who));
        }
    }
    Ok(pauses)
}

/// Pauses or resumes a queue.
pub(super) async fn set(app: App, sent: Sent) -> Response {
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
