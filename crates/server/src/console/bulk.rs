//! `/bulk/{id}`: a run of a bulk job, with its load settings and failed targets.

use std::slice;

use askama::Template;
use axum::response::Response;
use milepost_core::actions::Action as _;
use milepost_core::actions::bulk_run::{RunAction, RunChange};
use milepost_core::actions::job::Inputs;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::operation::{self, COUNTED_MAX};
use milepost_core::bulk::run::TargetFailure;
use milepost_core::bulk::settings::{Settings, SettingsChange};
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use milepost_core::listing::Waiting;
use milepost_core::port::Store;
use milepost_core::state::JobState;

use super::bulk_speed;
use super::bulks::{Row, held, url, why_stopped};
use super::flash::Flash;
use super::form::{Action, Sent, acting};
use super::format::{count, length, per_second, pretty, query};
use super::page::{Drawn, Page, draw};
use crate::app::App;
use crate::params::Path;
use crate::problem::{Code, Problem};

/// Maximum number of displayed failures.
const FAILURES: u32 = 100;

#[derive(Template)]
#[template(path = "bulk.html")]
struct Bulk {
    page: Page,
    row: Row,
    view: BulkView,
    /// The address of its definition.
    definition: String,
    why: Option<String>,
    /// The reason of the abort or failure.
    stopped: Option<String>,
    facts: Vec<(&'static str, String)>,
    parameters: String,
    failures: Vec<TargetFailure>,
    more_failures: bool,
    /// Of an operation on many jobs: the states that the jobs have now, with numbers and links.
    jobs: Vec<(&'static str, String, Option<String>)>,
    actions: Vec<Action>,
}

pub(super) async fn show(app: App, Path(id): Path<JobId>, page: Page) -> Drawn {
    let filter = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
    let view = app.store.bulks(&filter).await?.pop();
    let view = view.ok_or_else(|| {
        Problem::new(Code::NoSuchBulkJob, format!("There is no bulk job {id}, or it was deleted."))
    })?;
    let _permit = app.large.permit().await;
    let (job, mut failures, defined) = tokio::try_join!(
        app.store.job(id),
        app.store.bulk_failures(id, 0, FAILURES + 1),
        app.store.bulk_definition(&view.name)
    )?;
    let more_failures = failures.len() > FAILURES as usize;
    failures.truncate(FAILURES as usize);
    let stopped = why_stopped(slice::from_ref(&view), app.store.as_ref()).await?.remove(&id);
    let bulk = Bulk {
        jobs: jobs_now(&view, app.store.as_ref()).await?,
        stopped,
        why: job
            .as_ref()
            .and_then(|job| job.waiting_for.as_ref())
            .filter(|waiting| says_more(waiting, &view))
            .map(|waiting| waiting.in_words(page.now)),
        parameters: job.map(|job| pretty(job.payload.get())).unwrap_or_default(),
        facts: facts(&view, defined.as_ref()),
        actions: actions(&view, !failures.is_empty(), &page),
        row: Row::of(view.clone(), &app.paces, &page),
        failures,
        more_failures,
        definition: url(&view.name),
        view,
        page,
    };
    Ok(draw(&bulk))
}

/// Returns the states that the jobs of an operation have now. Those that have failed since it began are linked to.
async fn jobs_now(
    view: &BulkView,
    store: &dyn Store,
) -> Result<Vec<(&'static str, String, Option<String>)>, StoreError> {
    if view.name != operation::NAME {
        return Ok(Vec::new());
    }
    let mut counts = store.operated_jobs(view.id).await?;
    counts.sort_unstable();
    let since = view.started_at.map(|at| at.to_string());
    let url = |state: JobState| {
        let since = since.as_deref().filter(|_| state == JobState::Failed)?;
        Some(format!("/jobs?{}", query(&[("state", state.as_str()), ("since", since)])))
    };
    Ok(counts.into_iter().map(|(state, jobs)| (state.as_str(), count(jobs), url(state))).collect())
}

/// Returns whether the reason for the wait adds information: a throttled run always waits for its next check.
fn says_more(waiting: &Waiting, view: &BulkView) -> bool {
    held(view).is_none() || !matches!(waiting, Waiting::Time { .. } | Waiting::Turn)
}

fn facts(view: &BulkView, definition: Option<&Definition>) -> Vec<(&'static str, String)> {
    let span = |ms| length(std::time::Duration::from_millis(ms));
    let cursor = match (&view.cursor, &view.upper) {
        (Some(cursor), Some(upper)) => Some(format!("done up to {cursor}; the last target is {upper}")),
        (Some(cursor), None) => Some(format!("done up to {cursor}")),
        (None, Some(upper)) => Some(format!("at the beginning; the last target is {upper}")),
        (None, None) => None,
    };
    let chunks = view.chunk_rows.zip(view.chunk_ms).map(|(rows, ms)| {
        format!("{}, currently of {} rows; the last one took {ms} ms", count(view.counts.chunks), count(rows))
    });
    let all = [
        ("group", view.group.as_ref().map(|group| format!("{group}, priority {}", view.priority))),
        ("targets", view.place.as_ref().map(|place| format!("on the {place}"))),
        ("file", view.file.as_ref().map(|file| format!("{}, {} rows", file.name, count(file.rows)))),
        ("cursor", cursor),
        ("chunks", chunks),
        (
            "speed",
            view.rows_per_busy_s()
                .map(|rate| format!("{} while chunks ran ({})", per_second(rate), span(view.busy_ms))),
        ),
        ("throttled", (view.held_ms > 0).then(|| format!("{} in total", span(view.held_ms)))),
        ("after a crash", view.effects.map(|effects| effects.in_words().to_owned())),
        ("limits", bulk_speed::in_force(&view.settings, definition)),
    ];
    all.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

fn actions(view: &BulkView, has_failures: bool, page: &Page) -> Vec<Action> {
    let mut actions = Vec::new();
    if !page.viewer.operates {
        return actions;
    }
    if has_failures {
        let url = format!("/bulk/{}/retry-failures", view.id);
        let retry = Action::new(page, "retry-failures", url, RunChange::RetryFailures)
            .asks("Retry the failed targets?");
        actions.push(retry);
    }
    actions
}

/// Aborts, resumes or cancels a run.
pub(super) async fn operate(app: App, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        let action: RunAction = sent.operation()?;
        let inputs = Inputs { reason: Some(sent.reason()?), ..Inputs::default() };
        let store = acting(&app, &sent)?;
        let operated =
            app.perform(action.of_job(), id, &inputs, store.as_ref()).await.map_err(Problem::from)?;
        Ok(format!("{} of run {id}: {}.", action.title(), action.result(operated)))
    };
    let done = done.await;
    sent.answer(done)
}

/// Changes the load settings of a run.
pub(super) async fn set(app: App, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let settings = Settings {
            rows_per_s: sent.read("rate")?,
            duty: sent.read("duty")?,
            chunk_ms: sent.read("chunk_ms")?,
            chunk_rows_min: sent.read("rows_min")?,
            chunk_rows_max: sent.read("rows_max")?,
        };
        settings.check().map_err(|invalid| Flash::refused(format!("nothing was done: {invalid}")))?;
        let priority: Option<u8> = sent.read("priority")?;
        let priority = priority.map(Priority::try_from).transpose();
        let priority = priority.map_err(|error| Flash::refused(format!("nothing was done: {error}")))?;
        // The form shows all settings: the definition applies to those that are empty.
        store.set_bulk(id, &SettingsChange { as_defined: true, settings, priority }).await?;
        Ok("Changed; it applies from the next chunk on.".to_owned())
    };
    let done = done.await;
    sent.answer(done)
}

/// Starts a run over the failed targets.
pub(super) async fn retry_failures(app: App, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        let started = acting(&app, &sent)?.retry_bulk_failures(id).await?;
        Ok(format!("Job {} retries them.", started.job))
    };
    let done = done.await;
    sent.answer(done)
}
