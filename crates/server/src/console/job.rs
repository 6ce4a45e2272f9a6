//! `/jobs/{id}`: a job with its attempts, its state transitions, and the reason why it does not run.

use askama::Template;
use axum::Extension;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::job::{Inputs, JobAction};
use milepost_core::actions::queue::QueueAction;
use milepost_core::bulk::dry_run::{self, Bill, DryRun};
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::listing::{JobView, Waiting};
use milepost_core::schedule::schedule_of_key;
use milepost_core::transition::Verb;

use super::flash::Flash;
use super::form::{Action, Sent, acting};
use super::format::{between, length, pretty};
use super::page::{Drawn, Page, draw};
use super::queues::set_queue;
use super::{edit_job, format, state_diagram};
use crate::access::Identity;
use crate::api::attempt::{Attempt, attempts};
use crate::app::App;
use crate::params::{Path, encoded};
use crate::problem::{Code, Problem};

/// Maximum number of displayed transitions and attempts: a bulk job that is throttled for a night has thousands.
const DRAWN: usize = 100;
/// Number of transitions that are read: a claim and an end for each attempt, and some others.
const READ: u32 = 250;

#[derive(Template)]
#[template(path = "job.html")]
struct Job {
    page: Page,
    view: JobView,
    payload: String,
    result: Option<String>,
    checkpoint: Option<String>,
    schedule: Option<String>,
    is_bulk: bool,
    /// Whether hidden values can be shown to the user.
    may_reveal: bool,
    /// If the job is a dry run.
    rehearsed: Option<Rehearsed>,
    why: Option<Why>,
    failure: Option<String>,
    machine: String,
    /// The newest attempts, and whether there are others; likewise for transitions.
    lanes: Vec<Lane>,
    has_earlier_attempts: bool,
    history: Vec<Entry>,
    has_earlier_changes: bool,
    actions: Vec<Action>,
}

/// A dry run's bulk job, and its result when it has ended.
struct Rehearsed {
    bulk: String,
    bill: Option<Bill>,
}

/// The reason why the job does not run, and a link to the related page.
struct Why {
    words: String,
    link: Option<(String, &'static str)>,
    action: Option<Action>,
}

/// An attempt on the timeline.
struct Lane {
    attempt: Attempt,
    took: String,
    /// Position and width on a timeline of 1000 units.
    x: f64,
    width: f64,
    class: &'static str,
}

struct Entry {
    entry: HistoryEntry,
    after: String,
    reasons: String,
}

pub(super) async fn show(
    app: App,
    Extension(caller): Extension<Identity>,
    Path(id): Path<JobId>,
    page: Page,
) -> Drawn {
    let view =
        app.store.job(id).await?.ok_or_else(|| {
            Problem::new(Code::NoSuchJob, format!("There is no job {id}, or it was deleted."))
        })?;
    let _permit = app.large.permit().await;
    let mut history = app.store.history(id, HistoryPart::Newest { limit: READ }).await?;
    let is_part = history.len() == READ as usize;
    if is_part {
        // The first attempt that is shown has its claim.
        let claim = history.iter().position(|entry| entry.verb == Verb::Claim);
        history.drain(..claim.unwrap_or_default());
    }
    let bulk = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
    let is_bulk = !app.store.bulks(&bulk).await?.is_empty();
    let last_failure = history.iter().rev().find_map(failure);
    let attempts = attempts(&history);
    let job = Job {
        why: view.waiting_for.as_ref().map(|waiting| reason_of(waiting, &page)),
        failure: last_failure.filter(|_| !view.row.state.is_ended()),
        machine: state_diagram::draw(view.row.state, &history),
        has_earlier_attempts: is_part || attempts.len() > DRAWN,
        lanes: lanes(attempts, page.now),
        actions: edit_job::form(&page, &view, is_bulk).into_iter().chain(actions(&page, &view)).collect(),
        schedule: view.row.key.as_deref().and_then(schedule_of_key).map(str::to_owned),
        payload: pretty(view.payload.get()),
        result: view.result.as_ref().map(|json| pretty(json.get())),
        checkpoint: view.checkpoint.as_ref().map(|json| pretty(json.get())),
        has_earlier_changes: is_part || history.len() > DRAWN,
        history: entries(history),
        rehearsed: rehearsed(&view),
        is_bulk,
        may_reveal: app.hidden.hides_in(&view.row.kind) && app.may_reveal(&caller),
        view,
        page,
    };
    Ok(draw(&job))
}

/// The hidden values of a job.
#[derive(Template)]
#[template(path = "revealed_job.html")]
struct RevealedJob {
    page: Page,
    id: JobId,
    kind: String,
    payload: String,
    result: Option<String>,
    checkpoint: Option<String>,
    failure: Option<String>,
}

/// Shows the hidden values of a job, after an entry in the audit. They are in this page only, and not in a link to it.
pub(super) async fn reveal(
    app: App,
    Extension(caller): Extension<Identity>,
    Path(id): Path<JobId>,
    page: Page,
    sent: Sent,
) -> Response {
    let revealed = async {
        let actor = sent.actor_with_reason()?;
        Ok::<_, Flash>(app.reveal(id, &caller, actor).await?)
    };
    let view = match revealed.await {
        Ok(view) => view,
        Err(refused) => return sent.answer(Err(refused)),
    };
    draw(&RevealedJob {
        page,
        id,
        payload: pretty(view.payload.get()),
        result: view.result.as_ref().map(|json| pretty(json.get())),
        checkpoint: view.checkpoint.as_ref().map(|json| pretty(json.get())),
        failure: view.last_failure.and_then(|failure| failure.message),
        kind: view.row.kind,
    })
}

impl Job {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    /// Describes the progress that the handler reported.
    fn share(&self) -> Option<String> {
        let progress = self.view.progress.as_ref()?;
        let of = progress.total.map_or_else(String::new, |total| format!(" of {}", format::count(total)));
        let message = progress.message.as_ref().map_or_else(String::new, |message| format!(", {message}"));
        Some(format!("{}{of}{message}", format::count(progress.done)))
    }
}

fn rehearsed(view: &JobView) -> Option<Rehearsed> {
    let DryRun { bulk, .. } = dry_run::of_job(&view.row.kind, view.payload.get())?;
    let bill = view.result.as_ref().and_then(|result| serde_json::from_str(result.get()).ok());
    Some(Rehearsed { bulk, bill })
}

fn reason_of(waiting: &Waiting, page: &Page) -> Why {
    let (link, action) = match waiting {
        Waiting::Group { holder: Some(job), .. } => {
            (Some((format!("/jobs/{job}"), "The job that holds the slot")), None)
        }
        Waiting::PausedQueue { queue } => {
            (Some(("/queues".to_owned(), "Queues")), set_queue(queue, QueueAction::Resume, page))
        }
        Waiting::NoWorker { .. } => (Some(("/workers".to_owned(), "Workers")), None),
        Waiting::Turn => (Some(("/workers".to_owned(), "Running jobs")), None),
        _ => (None, None),
    };
    Why { words: waiting.in_words(page.now), link, action }
}

fn failure(entry: &HistoryEntry) -> Option<String> {
    let parts: Vec<&str> =
        [entry.error_code.as_deref(), entry.error_message.as_deref()].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

fn actions(page: &Page, view: &JobView) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    let form = |action: JobAction| {
        Action::new(page, action.as_str(), format!("/jobs/{}/operate", view.row.id), action)
            .asks(format!("{} this job?", action.title()))
    };
    JobAction::offered_in(view.row.state).into_iter().map(form).collect()
}

/// Returns the newest attempts with their positions on a timeline from the first of them to the last.
fn lanes(mut attempts: Vec<Attempt>, now: Timestamp) -> Vec<Lane> {
    attempts.drain(..attempts.len().saturating_sub(DRAWN));
    let Some(first) = attempts.first().map(|attempt| attempt.started_at) else { return Vec::new() };
    let last = attempts.iter().map(|attempt| attempt.ended_at.unwrap_or(now)).max().unwrap_or(now);
    let whole = between(first, last).as_secs_f64().max(0.001);
    let lane = |attempt: Attempt| {
        let took = between(attempt.started_at, attempt.ended_at.unwrap_or(now));
        let x = between(first, attempt.started_at).as_secs_f64() / whole * 990.0;
        let class = match attempt.outcome {
            None => "",
            Some(Verb::Succeed) => "good",
            Some(_) => "bad",
        };
        let width = (took.as_secs_f64() / whole * 990.0).max(6.0);
        Lane { took: length(took), x: x.min(990.0), width, class, attempt }
    };
    attempts.into_iter().map(lane).rev().collect()
}

/// Returns the latest transitions, newest first.
fn entries(history: Vec<HistoryEntry>) -> Vec<Entry> {
    let earlier = history.len().saturating_sub(DRAWN);
    let mut before: Option<Timestamp> = earlier.checked_sub(1).map(|last| history[last].at);
    let mut entries = Vec::new();
    for entry in history.into_iter().skip(earlier) {
        let mut reasons: Vec<String> = failure(&entry).into_iter().chain(entry.note.clone()).collect();
        if let Some(ready_at) = entry.ready_at.filter(|ready_at| *ready_at > entry.at) {
            reasons.push(format!("ready after {}", length(between(entry.at, ready_at))));
        }
        let after =
            before.map_or_else(String::new, |before| format!("+{}", length(between(before, entry.at))));
        before = Some(entry.at);
        entries.push(Entry { after, reasons: reasons.join("; "), entry });
    }
    entries.reverse();
    entries
}

/// Performs an action on the job.
pub(super) async fn operate(app: App, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        let action: JobAction = sent.operation()?;
        let inputs = Inputs { delay: sent.wait()?, reason: Some(sent.reason()?), ..Inputs::default() };
        let operated =
            app.perform(action, id, &inputs, acting(&app, &sent)?.as_ref()).await.map_err(Problem::from)?;
        Ok(format!("{}: the job is {}", action.title(), action.result(operated, &inputs)))
    };
    let done = done.await;
    sent.answer(done)
}
