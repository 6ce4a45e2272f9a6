//! `/schedules/{name}`: a schedule with what it creates, its next ticks, and the forms that change it.

use askama::Template;
use jiff::Timestamp;
use milepost_core::duration::exact;
use milepost_core::error::StoreError;
use milepost_core::schedule::{Makes, Misfire, ScheduleView, Source};

use super::form::Action;
use super::format::{count, cut, pretty, several};
use super::next_ticks::{NextTick, next_ticks};
use super::page::{Drawn, Page, draw};
use super::{schedule_form, schedules};
use crate::app::App;
use crate::params::{Path, encoded};

#[derive(Template)]
#[template(path = "schedule.html")]
struct SchedulePage {
    page: Page,
    view: ScheduleView,
    actions: Vec<Action>,
    /// The names and values of its settings.
    facts: Vec<(&'static str, String)>,
    /// What it creates, with the links to the definition and to what its ticks have created.
    makes: [(String, String); 2],
    document: (&'static str, String),
    refused: Option<(Timestamp, String)>,
    ticks: Vec<NextTick>,
}

impl SchedulePage {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

pub(super) async fn show(app: App, Path(name): Path<String>, page: Page) -> Drawn {
    let permit = app.large.permit().await;
    let view = app.store.schedule(&name).await?.ok_or(StoreError::NoSuchSchedule(name))?;
    let now = app.store.clock().await?.now;
    drop(permit);
    let actions =
        schedules::actions(&view, &page).into_iter().chain(schedule_form::change(&view, &page)).collect();
    let (makes, document) = match &view.schedule.makes {
        Makes::Job(job) => {
            let url = format!("/jobs?kind={}", encoded(&job.kind));
            (
                [(format!("jobs of kind {}", job.kind), url.clone()), ("Jobs of this kind".to_owned(), url)],
                ("Payload", pretty(job.payload.get())),
            )
        }
        Makes::Batch(batch) => {
            let dag = encoded(&batch.dag);
            let made = ("Batches of this DAG".to_owned(), format!("/batches?dag={dag}"));
            (
                [(format!("batches of {}", batch.dag), format!("/dags/{dag}")), made],
                ("Input", pretty(batch.input.get())),
            )
        }
    };
    let refused = view.refused.as_ref().map(|refused| (refused.at, cut(&refused.why, 500)));
    let (facts, ticks) = (facts(&view), next_ticks(&view.schedule.spec, now));
    Ok(draw(&SchedulePage { page, actions, facts, makes, document, refused, ticks, view }))
}

fn facts(view: &ScheduleView) -> Vec<(&'static str, String)> {
    let schedule = &view.schedule;
    let mut facts =
        vec![("ticks", schedule.spec.to_string()), ("time zone", schedule.spec.zone_name().to_owned())];
    if let Makes::Job(job) = &schedule.makes {
        facts.push(("queue", format!("{}, priority {}", job.queue, job.priority.get())));
        facts.extend(job.group.clone().map(|group| ("group", group)));
        facts.push(("attempts", format!("at most {}", job.max_attempts)));
        facts.extend(job.timeout.map(|timeout| ("time limit", exact(timeout))));
    }
    let missed = match schedule.misfire {
        Misfire::Skip => "create nothing".to_owned(),
        Misfire::Once => "create one together".to_owned(),
        Misfire::All { max } => {
            format!("create one each, the last {}", several(u64::from(max), "tick", "ticks"))
        }
    };
    facts.push((
        "missed ticks",
        format!("{missed}; missed if late by more than {}", exact(schedule.misfire_grace)),
    ));
    facts.push((
        "set by",
        match view.source {
            Source::Operator => "an operator",
            Source::Config => "a configuration",
        }
        .to_owned(),
    ));
    let fired = format!(
        "{}; {} more created nothing",
        several(view.fired.unsigned_abs(), "tick", "ticks"),
        count(view.dropped)
    );
    facts.push(("fired", fired));
    facts
}
