//! `/schedules`: schedules and their next ticks.

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::schedule::ScheduleAction;
use milepost_core::schedule::{Made, Makes, ScheduleView, Spec, ZONE_DEFAULT};
use milepost_core::worker::WorkerView;
use serde::Deserialize;

use super::flash::Flash;
use super::form::{Action, Field, Sent, acting, once};
use super::format::{count, cut};
use super::next_ticks::{NextTick, next_ticks};
use super::page::{Drawn, Page, draw};
use super::schedule_form;
use crate::app::App;
use crate::params::{Query, encoded};

#[derive(Template)]
#[template(path = "schedules.html")]
struct Schedules {
    page: Page,
    create: Option<Action>,
    preview: Preview,
    rows: Vec<Row>,
}

impl Schedules {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

struct Row {
    view: ScheduleView,
    ticks: String,
    makes: String,
    /// The list of the jobs or batches that its ticks created.
    url: String,
    fired: String,
    obstacle: Option<String>,
    actions: Vec<Action>,
}

/// A specification of ticks to be shown before it is used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    ticks: String,
    #[serde(default)]
    zone: String,
}

/// The next ticks of a specification, or why it is invalid.
struct Preview {
    ticks: String,
    zone: String,
    next: Result<Vec<NextTick>, String>,
}

impl Preview {
    fn of(asked: Asked, now: Timestamp) -> Self {
        let Asked { ticks, zone } = asked;
        let zone = if zone.trim().is_empty() { ZONE_DEFAULT.to_owned() } else { zone };
        let parsed = (!ticks.trim().is_empty()).then(|| Spec::parse(&ticks, &zone));
        let (zone, next) = match parsed {
            None => (zone, Ok(Vec::new())),
            // Intervals have no time zone.
            Some(Ok(spec)) => (spec.zone_name().to_owned(), Ok(next_ticks(&spec, now))),
            Some(Err(invalid)) => (zone, Err(invalid.to_string())),
        };
        Self { ticks, zone, next }
    }
}

pub(super) async fn list(app: App, Query(asked): Query<Asked>, page: Page) -> Drawn {
    let (views, workers) = tokio::join!(app.store.schedules_without_payloads(), app.store.workers());
    let (views, workers) = (views?, workers?);
    let nobody = !workers.iter().any(WorkerView::is_active);
    let rows = views.into_iter().enumerate().map(|(place, view)| row(view, place, nobody, &page)).collect();
    let preview = Preview::of(asked, page.now);
    Ok(draw(&Schedules { rows, create: schedule_form::create(&page), preview, page }))
}

fn row(view: ScheduleView, place: usize, nobody: bool, page: &Page) -> Row {
    let spec = &view.schedule.spec;
    let (makes, url) = match &view.schedule.makes {
        Makes::Job(job) => (job.kind.clone(), format!("/jobs?kind={}", encoded(&job.kind))),
        Makes::Batch(batch) => {
            (format!("batch of {}", batch.dag), format!("/batches?dag={}", encoded(&batch.dag)))
        }
    };
    let obstacle = if nobody && view.paused_at.is_none() {
        Some("no active worker to run its ticks".to_owned())
    } else {
        view.refused
            .as_ref()
            .map(|refused| format!("the tick at {} started no batch: {}", refused.at, cut(&refused.why, 200)))
    };
    Row {
        ticks: match spec.zone_name() {
            "UTC" => spec.to_string(),
            zone => format!("{spec} {zone}"),
        },
        makes,
        url,
        fired: count(view.fired),
        obstacle,
        actions: actions(&view, page).into_iter().map(|action| action.among(place)).collect(),
        view,
    }
}

/// Returns the buttons of a schedule that change nothing that is stored of it.
pub(super) fn actions(view: &ScheduleView, page: &Page) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    vec![form(view, ScheduleAction::RunNow, page), stop(view, page)]
}

/// The button that pauses or resumes a schedule.
pub(super) fn stop(view: &ScheduleView, page: &Page) -> Action {
    let action = if view.paused_at.is_some() { ScheduleAction::Resume } else { ScheduleAction::Pause };
    form(view, action, page)
}

fn form(view: &ScheduleView, action: ScheduleAction, page: &Page) -> Action {
    let name = &view.schedule.name;
    let question = match action {
        ScheduleAction::RunNow => format!("Run {name} now?"),
        ScheduleAction::Pause | ScheduleAction::Resume => format!("{} {name}?", action.title()),
    };
    let form = Action::new(page, action.as_str(), "/schedule/operate", action)
        .asks(question)
        .with(Field::hidden("schedule", name));
    if action == ScheduleAction::RunNow { form.with(once()) } else { form }
}

fn what_it_made(made: Made) -> String {
    let words = match made {
        Made::Job(job) => format!("Job {} was enqueued.", job.job),
        Made::Batch(batch) => format!("Batch {} was started.", batch.batch),
    };
    if made.is_duplicate() { format!("This form was submitted before. {words}") } else { words }
}

/// Pauses, resumes or runs a schedule.
pub(super) async fn operate(app: App, sent: Sent) -> Response {
    let done = async {
        let (name, store) = (sent.needed("schedule")?, acting(&app, &sent)?);
        match sent.operation()? {
            ScheduleAction::Pause => {
                store.pause_schedule(name).await.map(|_| format!("Schedule {name} is paused."))
            }
            ScheduleAction::Resume => {
                store.resume_schedule(name).await.map(|_| format!("Schedule {name} is resumed."))
            }
            ScheduleAction::RunNow => store.run_schedule_now(name, sent.submission()).await.map(what_it_made),
        }
        .map_err(Flash::from)
    };
    let done = done.await;
    sent.answer(done)
}
