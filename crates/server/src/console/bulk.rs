//! `/bulk/{id}`: one run of a bulk job, with what it may take and what could not be done.

use std::slice;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::run::{Settings, TargetFailure};
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use milepost_core::listing::Waiting;

use super::act::{Action, Field, Sent, acting};
use super::bulks::{Row, held, why_stopped};
use super::flash::Flash;
use super::page::{Drawn, Page, draw};
use super::words::{count, length, per_second, pretty, why};
use crate::app::App;
use crate::params::Path;
use crate::problem::Problem;

/// How many failures are shown.
const FAILURES: u32 = 100;

#[derive(Template)]
#[template(path = "bulk.html")]
struct Bulk {
    page: Page,
    row: Row,
    view: BulkView,
    why: Option<String>,
    /// Why it was stopped, or failed.
    stopped: Option<String>,
    facts: Vec<(&'static str, String)>,
    parameters: String,
    failures: Vec<TargetFailure>,
    more_failures: bool,
    actions: Vec<Action>,
}

pub(super) async fn show(State(app): State<App>, Path(id): Path<JobId>, page: Page) -> Drawn {
    let filter = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
    let view = app.store.bulks(&filter).await?.pop();
    let view = view.ok_or_else(|| {
        Problem::not_found("no_such_bulk_job", format!("There is no bulk job {id}, or it was forgotten."))
    })?;
    let (job, mut failures) =
        tokio::try_join!(app.store.job(id), app.store.bulk_failures(id, 0, FAILURES + 1))?;
    let more_failures = failures.len() > FAILURES as usize;
    failures.truncate(FAILURES as usize);
    let stopped = why_stopped(slice::from_ref(&view), app.store.as_ref()).await?.remove(&id);
    let bulk = Bulk {
        stopped,
        why: job
            .as_ref()
            .and_then(|job| job.waiting_for.as_ref())
            .filter(|waiting| says_more(waiting, &view))
            .map(|waiting| why(waiting, page.now)),
        parameters: job.map(|job| pretty(job.payload.get())).unwrap_or_default(),
        facts: facts(&view),
        actions: actions(&view, !failures.is_empty(), &page),
        row: Row::of(view.clone(), &app.paces, &page),
        failures,
        more_failures,
        view,
        page,
    };
    Ok(draw(&bulk))
}

/// Whether what it waits for is more than that it looks again soon whether it is still held.
fn says_more(waiting: &Waiting, view: &BulkView) -> bool {
    held(view).is_none() || !matches!(waiting, Waiting::Time { .. } | Waiting::Turn)
}

fn facts(view: &BulkView) -> Vec<(&'static str, String)> {
    let span = |ms| length(std::time::Duration::from_millis(ms));
    let cursor = match (&view.cursor, &view.upper) {
        (Some(cursor), Some(upper)) => {
            Some(format!("all up to {cursor} is done; the last target is {upper}"))
        }
        (Some(cursor), None) => Some(format!("all up to {cursor} is done")),
        (None, Some(upper)) => Some(format!("at the beginning; the last target is {upper}")),
        (None, None) => None,
    };
    let chunks = view.chunk_rows.zip(view.chunk_ms).map(|(rows, ms)| {
        format!("{}, now of {} rows; the last one took {ms} ms", count(view.counts.chunks), count(rows))
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
        ("held", (view.held_ms > 0).then(|| format!("{} in all", span(view.held_ms)))),
        ("a crash", view.effects.map(|effects| effects.as_str().replace('_', " "))),
        ("may take", settings(&view.settings)),
    ];
    all.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

/// What operators set, if they set anything.
fn settings(set: &Settings) -> Option<String> {
    let all = [
        set.rows_per_s.map(|rows| format!("at most {}", per_second(rows))),
        set.duty.map(|duty| format!("chunks take {:.0} % of the time at most", duty * 100.0)),
        set.chunk_ms.map(|ms| format!("a chunk shall take {ms} ms")),
        set.chunk_rows_min.map(|rows| format!("at least {} rows a chunk", count(rows))),
        set.chunk_rows_max.map(|rows| format!("at most {} rows a chunk", count(rows))),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn actions(view: &BulkView, has_failures: bool, page: &Page) -> Vec<Action> {
    let mut actions = Vec::new();
    if !page.viewer.operates {
        return actions;
    }
    let (id, set) = (view.id, &view.settings);
    let text = |value: Option<String>| value.unwrap_or_default();
    let as_it_is = "stays as it is";
    if view.state.is_live() {
        let set = Action::new(page, "set", format!("/bulk/{id}/set"), "Set")
            .asks("What may it take?", "Counts from its next chunk on. An empty field stays as it is.")
            .with(Field::shown(
                "rate",
                "Rows a second at most",
                text(set.rows_per_s.map(|rate| rate.to_string())),
                as_it_is,
            ))
            .with(Field::shown(
                "duty",
                "Part of the time that chunks take, 0 to 1",
                text(set.duty.map(|duty| duty.to_string())),
                as_it_is,
            ))
            .with(Field::shown(
                "chunk_ms",
                "How long a chunk shall take, ms",
                text(set.chunk_ms.map(|ms| ms.to_string())),
                as_it_is,
            ))
            .with(Field::shown(
                "rows_min",
                "Fewest rows of a chunk",
                text(set.chunk_rows_min.map(|rows| rows.to_string())),
                as_it_is,
            ))
            .with(Field::shown(
                "rows_max",
                "Most rows of a chunk",
                text(set.chunk_rows_max.map(|rows| rows.to_string())),
                as_it_is,
            ))
            .with(Field::shown("priority", "Priority in its group, 1 to 4", view.priority.to_string(), ""))
            .with_reason();
        actions.push(set);
    }
    if has_failures {
        let retry =
            Action::new(page, "retry-failures", format!("/bulk/{id}/retry-failures"), "Retry the failures")
                .asks(
                    "Try what failed again?",
                    "A run over the failures of this one is started, with the same parameters.",
                )
                .with_reason();
        actions.push(retry);
    }
    actions
}

/// Sets what a run may take.
pub(super) async fn set(State(app): State<App>, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        sent.reason()?;
        let settings = Settings {
            rows_per_s: sent.read("rate")?,
            duty: sent.read("duty")?,
            chunk_ms: sent.read("chunk_ms")?,
            chunk_rows_min: sent.read("rows_min")?,
            chunk_rows_max: sent.read("rows_max")?,
        };
        let filter = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
        let before = app.store.bulks(&filter).await?.pop().map(|view| view.settings).unwrap_or_default();
        let all = settings.over(before);
        all.check().map_err(|invalid| Flash::refused(format!("nothing was done: {invalid}")))?;
        let priority: Option<u8> = sent.read("priority")?;
        let priority = priority.map(Priority::try_from).transpose();
        let priority = priority.map_err(|error| Flash::refused(format!("nothing was done: {error}")))?;
        acting(&app, &sent).set_bulk(id, &settings, priority).await?;
        Ok("Set; it counts from the next chunk on.".to_owned())
    };
    let done = done.await;
    sent.answer(done)
}

/// Starts a run over what failed.
pub(super) async fn retry_failures(State(app): State<App>, Path(id): Path<JobId>, sent: Sent) -> Response {
    let done = async {
        sent.reason()?;
        let started = acting(&app, &sent).retry_bulk_failures(id).await?;
        Ok(format!("Job {} tries them again.", started.job))
    };
    let done = done.await;
    sent.answer(done)
}
