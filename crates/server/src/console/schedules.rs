//! `/schedules`: schedules and their next ticks.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use milepost_core::schedule::{Made, Makes, ScheduleView};

use super::act::{Action, Field, Sent, acting};
use super::flash::Flash;
use super::page::{Drawn, Page, draw};
use super::words::{count, cut, encoded};
use crate::app::App;

#[derive(Template)]
#[template(path = "schedules.html")]
struct Schedules {
    page: Page,
    rows: Vec<Row>,
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

pub(super) async fn list(State(app): State<App>, page: Page) -> Drawn {
    let (views, workers) = tokio::try_join!(app.store.schedules(), app.store.workers())?;
    let nobody = !workers.iter().any(|worker| worker.ended_at.is_none());
    let rows = views.into_iter().enumerate().map(|(place, view)| row(view, place, nobody, &page)).collect();
    Ok(draw(&Schedules { rows, page }))
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
        actions: if page.viewer.operates { actions(&view, place, page) } else { Vec::new() },
        view,
    }
}

fn actions(view: &ScheduleView, place: usize, page: &Page) -> Vec<Action> {
    let name = &view.schedule.name;
    let run = act(name, page, "Run now", "run")
        .asks(format!("Run {name} now?"), "Once, in addition to its ticks, even while it is paused.");
    vec![run.among(place), stop(view, page).among(place)]
}

/// The button that pauses or resumes a schedule.
pub(super) fn stop(view: &ScheduleView, page: &Page) -> Action {
    let name = &view.schedule.name;
    if view.paused_at.is_some() {
        act(name, page, "Resume", "resume").asks(
            format!("Resume {name}?"),
            "It continues with its next tick from now on. Ticks during the pause are dropped.",
        )
    } else {
        act(name, page, "Pause", "pause")
            .asks(format!("Pause {name}?"), "It does not tick until an operator resumes it.")
            .danger()
    }
}

fn act(schedule: &str, page: &Page, label: &'static str, deed: &str) -> Action {
    Action::new(page, deed, "/schedules/operate", label)
        .with(Field::hidden("schedule", schedule))
        .with(Field::hidden("deed", deed))
        .with_reason()
}

/// Pauses, resumes or runs a schedule.
pub(super) async fn operate(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        sent.reason()?;
        let name = sent.needed("schedule")?;
        let store = acting(&app, &sent);
        match sent.needed("deed")? {
            "pause" => store.pause_schedule(name).await.map(|_| format!("Schedule {name} is paused.")),
            "resume" => store.resume_schedule(name).await.map(|_| format!("Schedule {name} is resumed.")),
            "run" => store.run_schedule_now(name, None).await.map(|made| match made {
                Made::Job(job) => format!("Job {} was enqueued.", job.job),
                Made::Batch(batch) => format!("Batch {} was started.", batch.batch),
            }),
            other => {
                return Err(Flash::refused(format!(
                    "nothing was done: unknown operation {other:?}; expected pause, resume or run"
                )));
            }
        }
        .map_err(Flash::from)
    };
    let done = done.await;
    sent.answer(done)
}
