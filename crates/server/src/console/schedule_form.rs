//! The forms that create, change and remove a schedule.

use std::time::Duration;

use axum::response::Response;
use milepost_core::actions::Action as _;
use milepost_core::actions::schedule::ScheduleChange;
use milepost_core::duration::{exact, parse};
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority, QUEUE_DEFAULT};
use milepost_core::schedule::{
    BatchTemplate, InvalidSchedule, JobTemplate, MISFIRE_GRACE_DEFAULT, MISFIRE_MAX_DEFAULT, Makes, Misfire,
    Schedule, ScheduleView, Source, Spec, ZONE_DEFAULT,
};
use serde_json::value::RawValue;

use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting};
use super::format::pretty;
use super::page::Page;
use crate::api::schedules::{check_input, remove_by_operator};
use crate::app::App;
use crate::params::encoded;

/// The policies for missed ticks, and their labels.
const MISFIRES: [(&str, &str); 3] =
    [("once", "one job or batch for all of them"), ("skip", "none"), ("all", "one for each")];

/// The hidden field with the fingerprint of the settings that a form changes.
const BEFORE: &str = "before";

/// Returns the button that creates a schedule.
pub(super) fn create(page: &Page) -> Option<Action> {
    let form = Action::new(page, "create", "/schedule/save", ScheduleChange::Create)
        .asks(ScheduleChange::Create.title())
        .with(Field::shown("name", "Name", "", "such as nightly").required())
        .with(ticks("").required())
        .with(zone(ZONE_DEFAULT))
        .with(Field::shown("kind", "Kind of the jobs", "", "creates jobs of this kind"))
        .with(Field::shown("dag", "DAG of the batches, instead of a kind", "", "starts batches of this DAG"))
        .with(document("Payload of the jobs, or input of the batches, JSON", String::new()));
    let form = settings_of_jobs(None).into_iter().chain(settings_of_misfires(None)).fold(form, Action::with);
    page.viewer.operates.then_some(form)
}

/// Returns the buttons that change and remove a schedule. One of a configuration cannot be removed: the configuration would create it again.
pub(super) fn change(view: &ScheduleView, page: &Page) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    let schedule = &view.schedule;
    let form = |change: ScheduleChange, url: &str| {
        Action::new(page, change.as_str(), url, change)
            .asks(format!("{} {}", change.title(), schedule.name))
            .with(Field::hidden("name", &schedule.name))
            .with(Field::hidden(BEFORE, schedule.fingerprint().to_string()))
    };
    let edit = form(ScheduleChange::Edit, "/schedule/save")
        .with(ticks(&schedule.spec.to_string()).required())
        .with(zone(schedule.spec.zone_name()));
    let edit = match &schedule.makes {
        Makes::Job(job) => settings_of_jobs(Some(job)).into_iter().fold(
            edit.with(Field::shown("kind", "Kind of the jobs", &job.kind, "").required())
                .with(document("Payload of the jobs, JSON", pretty(job.payload.get()))),
            Action::with,
        ),
        Makes::Batch(batch) => edit
            .with(Field::shown("dag", "DAG of the batches", &batch.dag, "").required())
            .with(document("Input of the batches, JSON", pretty(batch.input.get()))),
    };
    let edit = settings_of_misfires(Some(schedule)).into_iter().fold(edit, Action::with);
    let remove = (view.source == Source::Operator)
        .then(|| form(ScheduleChange::Remove, "/schedule/remove").asks(format!("Remove {}?", schedule.name)));
    std::iter::once(edit).chain(remove).collect()
}

fn ticks(value: &str) -> Field {
    Field::shown("ticks", "Ticks", value, "0 3 * * *, @daily or @every 10m")
}

fn zone(value: &str) -> Field {
    Field::shown("zone", "Time zone", value, "such as Europe/Berlin")
}

fn document(label: &'static str, value: String) -> Field {
    Field::shown("document", label, value, "{}").edited_as(Control::Json)
}

/// Returns the fields that only schedules of jobs have.
fn settings_of_jobs(job: Option<&JobTemplate>) -> Vec<Field> {
    let text = |of: fn(&JobTemplate) -> String| job.map(of).unwrap_or_default();
    vec![
        Field::shown("queue", "Queue", text(|job| job.queue.clone()), QUEUE_DEFAULT),
        Field::shown(
            "group",
            "Group",
            text(|job| job.group.clone().unwrap_or_default()),
            "none; jobs of a group run one at a time",
        ),
        Field::shown(
            "priority",
            "Priority",
            text(|job| job.priority.get().to_string()),
            "from 1 (first) to 4 (last)",
        ),
        Field::shown(
            "max_attempts",
            "Attempts",
            text(|job| job.max_attempts.to_string()),
            MAX_ATTEMPTS_DEFAULT.to_string(),
        ),
        Field::shown(
            "timeout",
            "Time limit of an attempt",
            text(|job| job.timeout.map(exact).unwrap_or_default()),
            "none; or 10m, 2h",
        ),
    ]
}

/// Returns the fields for missed ticks.
fn settings_of_misfires(schedule: Option<&Schedule>) -> [Field; 3] {
    let (misfire, grace) = schedule.map_or((Misfire::default(), MISFIRE_GRACE_DEFAULT), |schedule| {
        (schedule.misfire, schedule.misfire_grace)
    });
    let (policy, max) = match misfire {
        Misfire::Skip => ("skip", MISFIRE_MAX_DEFAULT),
        Misfire::Once => ("once", MISFIRE_MAX_DEFAULT),
        Misfire::All { max } => ("all", max),
    };
    let choices = MISFIRES.map(|(value, label)| (value.to_owned(), label.to_owned())).into();
    [
        Field::shown("misfire", "Missed ticks create", policy, "")
            .required()
            .edited_as(Control::Choice(choices)),
        Field::shown("misfire_max", "At most, if one for each", max.to_string(), "")
            .edited_as(Control::Number),
        Field::shown("misfire_grace", "Missed if late by", exact(grace), exact(MISFIRE_GRACE_DEFAULT)),
    ]
}

/// Stores a schedule, and shows its page.
pub(super) async fn save(app: App, sent: Sent) -> Response {
    let saved = async {
        let (store, schedule) = (acting(&app, &sent)?, read(&sent)?);
        let name = &schedule.name;
        let before = app.store.schedule(name).await?;
        let missing = check_input(&app, store.as_ref(), &schedule).await?;
        let (stored, why_not) = if sent.operation::<ScheduleChange>()? == ScheduleChange::Create {
            (store.create_schedule(&schedule).await?, "exists already; edit it on its page")
        } else {
            let Some(edited) = sent.read(BEFORE)? else { return Err(refused(BEFORE, "it is missing")) };
            let outdated = "was changed or removed since this form was opened; reload the page";
            (store.edit_schedule(&schedule, edited).await?, outdated)
        };
        if !stored {
            return Err(Flash::refused(format!("nothing was done: the schedule {name} {why_not}")));
        }
        let mut words = format!("Schedule {name} is stored.");
        if let Some(missing) = missing {
            words = format!("{words} But {missing}. Until then its ticks start nothing.");
        }
        if before.is_some_and(|view| view.source == Source::Config) {
            words = format!("{words} Its configuration does not change it any more.");
        }
        Ok((words, format!("/schedules/{}", encoded(name))))
    };
    match saved.await {
        Ok((words, page)) => Flash::done(words).on(&page),
        Err(flash) => sent.answer(Err(flash)),
    }
}

/// Removes a schedule, and shows the list.
pub(super) async fn remove(app: App, sent: Sent) -> Response {
    let removed = async {
        let (name, store) = (sent.needed("name")?, acting(&app, &sent)?);
        remove_by_operator(store.as_ref(), name).await?;
        Ok(format!("Schedule {name} is removed. Its jobs and batches stay."))
    };
    match removed.await {
        Ok(words) => Flash::done(words).on("/schedules"),
        Err(flash) => sent.answer(Err(flash)),
    }
}

fn refused(field: &str, why: impl std::fmt::Display) -> Flash {
    Flash::refused(format!("nothing was done: {field}: {why}"))
}

/// Reads the schedule of a form.
fn read(sent: &Sent) -> Result<Schedule, Flash> {
    let zone = sent.value("zone").unwrap_or(ZONE_DEFAULT);
    let spec = Spec::parse(sent.needed("ticks")?.trim(), zone).map_err(|invalid| {
        refused(if matches!(invalid, InvalidSchedule::Zone { .. }) { "zone" } else { "ticks" }, invalid)
    })?;
    let misfire = match sent.needed("misfire")? {
        "skip" => Misfire::Skip,
        "once" => Misfire::Once,
        "all" => Misfire::All { max: sent.read("misfire_max")?.unwrap_or(MISFIRE_MAX_DEFAULT) },
        other => return Err(refused("misfire", format!("{other:?} is not once, skip or all"))),
    };
    let grace = duration(sent, "misfire_grace")?.unwrap_or(MISFIRE_GRACE_DEFAULT);
    let schedule =
        Schedule::new(sent.needed("name")?, spec, makes(sent)?).misfire(misfire).misfire_grace(grace);
    schedule.check().map_err(|invalid| match invalid {
        InvalidSchedule::Name { .. } => refused("name", invalid),
        InvalidSchedule::MisfireMax { .. } => refused("misfire_max", invalid),
        _ => Flash::refused(format!("nothing was done: {invalid}")),
    })?;
    Ok(schedule)
}

fn makes(sent: &Sent) -> Result<Makes, Flash> {
    let document = sent.field("document");
    match (sent.field("kind"), sent.field("dag")) {
        (Some(kind), None) => {
            let job = NewJob::from_json(kind, document.unwrap_or("null").to_owned())
                .map_err(|invalid| refused("payload", invalid))?;
            Ok(Makes::from(NewJob {
                queue: sent.field("queue").map_or(job.queue, str::to_owned),
                group: sent.field("group").map(str::to_owned),
                priority: match sent.read::<u8>("priority")? {
                    Some(priority) => {
                        Priority::try_from(priority).map_err(|invalid| refused("priority", invalid))?
                    }
                    None => job.priority,
                },
                max_attempts: sent.read("max_attempts")?.unwrap_or(job.max_attempts),
                timeout: duration(sent, "timeout")?,
                ..job
            }))
        }
        (None, Some(dag)) => {
            let mut of_jobs = settings_of_jobs(None).into_iter();
            if let Some(field) = of_jobs.find(|field| sent.field(&field.name).is_some()) {
                let words = "it applies to jobs, but the schedule starts batches; leave it empty";
                return Err(refused(&field.name, words));
            }
            let input = RawValue::from_string(document.unwrap_or("{}").to_owned())
                .map_err(|invalid| refused("input", invalid))?;
            Ok(Makes::Batch(BatchTemplate { dag: dag.to_owned(), input }))
        }
        (None, None) => Err(refused("kind", "a schedule needs a kind or a DAG")),
        (Some(_), Some(_)) => Err(refused("dag", "a schedule has a kind or a DAG, not both")),
    }
}

fn duration(sent: &Sent, name: &'static str) -> Result<Option<Duration>, Flash> {
    sent.value(name).map(|text| parse(text).map_err(|invalid| refused(name, invalid))).transpose()
}
