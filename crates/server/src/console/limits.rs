//! Rate limits that operators set on a kind to slow it down, and their removal.

use axum::response::Response;
use milepost_core::actions::Action as _;
use milepost_core::actions::limit::LimitAction;
use milepost_core::alert::{AlertKey, AlertRule};
use milepost_core::error::StoreError;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target};

use super::alert::{Alert, Details, quoted};
use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting};
use super::format::{kind_url, several};
use super::page::Page;
use crate::app::App;
use crate::params::encoded;

/// The suggested rate, which nearly stops a kind: one job starts immediately and shows whether the problem persists.
const SLOW: &str = "1/h";
/// Rates up to one per minute that an operator has set for a kind cause an alert until they are removed.
const SLOW_PER_SECOND: f64 = 1.0 / 60.0;

/// The button that slows a kind down. Not available if the kind has a limit, which would be lost, or if that is not known yet.
pub(super) fn slow_down(kind: &str, limits: Option<&[LimitView]>, page: &Page) -> Option<Action> {
    let is_free = limits?.iter().all(|view| !is_of(view, kind));
    let action = Action::new(page, format!("slow-{}", encoded(kind)), "/limits/set", LimitAction::SlowDown)
        .asks(format!("Slow kind {kind} down?"))
        .with(Field::hidden("kind", kind))
        .with(Field::shown("rate", "Maximum rate of starts", SLOW, "10/s, 100/m, 1/h or 1/30d"));
    (page.viewer.operates && is_free).then_some(action)
}

/// The button that removes a limit. Not available for limits from a configuration, which would be set again.
pub(super) fn lift(view: &LimitView, page: &Page) -> Option<Action> {
    let target = &view.limit.target;
    let noun = noun(target);
    let id = format!("lift-{noun}-{}", encoded(target.name()));
    let action = Action::new(page, id, "/limits/remove", LimitAction::Remove)
        .asks(format!("Remove the limit of {target}?"))
        .with(Field::hidden(noun, target.name()));
    (page.viewer.operates && view.source == Source::Operator).then_some(action)
}

/// The kinds of targets in a form, and their labels.
const TARGETS: [(&str, &str); 2] = [("kind", "kind"), ("group", "group, or class such as tenant:*")];

/// Returns the button that sets a limit.
pub(super) fn set_any(page: &Page) -> Option<Action> {
    let choices = TARGETS.map(|(value, label)| (value.to_owned(), label.to_owned())).into();
    let target = Field::shown("target", "Limit of a", "", "").required().edited_as(Control::Choice(choices));
    let form = Action::new(page, "set-limit", "/limits/put", LimitAction::Set)
        .asks(LimitAction::Set.title())
        .with(target)
        .with(Field::shown("name", "Name", "", "such as mail or tenant:*").required());
    let form = values(None, true).into_iter().fold(form, Action::with);
    page.viewer.operates.then_some(form)
}

/// Returns the button that changes a limit.
pub(super) fn edit(view: &LimitView, page: &Page) -> Option<Action> {
    let target = &view.limit.target;
    let noun = noun(target);
    let form =
        Action::new(page, format!("edit-{noun}-{}", encoded(target.name())), "/limits/put", LimitAction::Set)
            .asks(format!("Change the limit of {target}"))
            .with(Field::hidden("target", noun))
            .with(Field::hidden("name", target.name()));
    let form = values(Some(&view.limit), noun == "group").into_iter().fold(form, Action::with);
    page.viewer.operates.then_some(form)
}

const fn noun(target: &Target) -> &'static str {
    match target {
        Target::Kind(_) => "kind",
        Target::Group(_) => "group",
    }
}

/// Returns the fields with the rate, the burst, and the slots of groups.
fn values(limit: Option<&Limit>, with_slots: bool) -> Vec<Field> {
    let rate = limit.and_then(|limit| limit.rate);
    let slots = limit.and_then(|limit| limit.slots);
    let number = |name, label, value: Option<u32>, hint| {
        let value = value.map(|value| value.to_string()).unwrap_or_default();
        Field::shown(name, label, value, hint).edited_as(Control::Number)
    };
    let mut fields = vec![
        Field::shown(
            "rate",
            "Maximum rate of starts",
            rate.map(|rate| rate.to_string()).unwrap_or_default(),
            "10/s, 100/m, 1/h or 1/30d",
        ),
        number("burst", "Burst", rate.map(|rate| rate.burst), "the starts of one second, at least 1"),
    ];
    if with_slots {
        fields.push(number("slots", "Jobs at a time, of a group", slots, "no limit if there is a rate"));
    }
    fields
}

/// Sets or changes a limit.
pub(super) async fn put(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let name = sent.needed("name")?.to_owned();
        let target = match sent.needed("target")? {
            "kind" => Target::Kind(name),
            "group" => Target::Group(name),
            other => {
                return Err(Flash::refused(format!(
                    "nothing was done: target {other:?} is not kind or group"
                )));
            }
        };
        let before = app.store.limits().await?.into_iter().find(|view| view.limit.target == target);
        let known = before.as_ref().and_then(|view| view.limit.rate);
        let limit = Limit { slots: sent.read("slots")?, rate: rate(&sent, known)?, target };
        limit.check().map_err(StoreError::Limit)?;
        store.put_limit(&limit, Source::Operator).await?;
        let configured = before.is_some_and(|view| view.source == Source::Config);
        let note = if configured { " Its configuration does not change it any more." } else { "" };
        Ok(format!("The limit of {} is set.{note}", limit.target))
    };
    let done = done.await;
    sent.answer(done)
}

/// Reads a rate. A text that shows the known rate means exactly that: it can be rounded.
fn rate(sent: &Sent, known: Option<Rate>) -> Result<Option<Rate>, Flash> {
    let burst: Option<u32> = sent.read("burst")?;
    let Some(text) = sent.value("rate") else {
        return match burst {
            Some(_) => Err(Flash::refused("nothing was done: a burst needs a rate")),
            None => Ok(None),
        };
    };
    let rate = match known.filter(|known| known.to_string() == text) {
        Some(known) => Rate::steady(known.per_second),
        None => Rate::parse_per_second(text).map(Rate::steady).map_err(StoreError::Limit)?,
    };
    Ok(Some(Rate { burst: burst.unwrap_or(rate.burst), ..rate }))
}

/// Alerts for kinds that an operator has slowed down.
pub(super) fn slowed(limits: &[LimitView], page: &Page) -> Vec<Alert> {
    let of = |view: &LimitView| {
        let (Target::Kind(kind), Some(rate), Source::Operator) =
            (&view.limit.target, view.limit.rate, view.source)
        else {
            return None;
        };
        (rate.per_second <= SLOW_PER_SECOND).then(|| Alert {
            key: AlertKey::new(AlertRule::LimitSlowed, kind.as_str()),
            error: false,
            title: format!("Kind {kind} is slowed down"),
            words: format!(
                "At most {rate} of its jobs start; {}.",
                several(view.waiting.unsigned_abs(), "job waits", "jobs wait")
            ),
            details: Details::at(kind_url(kind), format!("milepost limits remove --kind={}", quoted(kind))),
            preview: None,
            actions: lift(view, page).into_iter().collect(),
            silence: None,
        })
    };
    limits.iter().filter_map(of).collect()
}

fn is_of(view: &LimitView, kind: &str) -> bool {
    matches!(&view.limit.target, Target::Kind(its) if its == kind)
}

/// Returns all limits from the cache.
async fn known(app: &App) -> Result<Vec<LimitView>, Flash> {
    let limits = app.known.limits(&app.store).await?;
    limits.ok_or_else(|| {
        Flash::refused("nothing was done: the limits are still being counted; try again in a moment")
    })
}

/// Sets the rate limit of a kind.
pub(super) async fn set(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let (kind, rate) = (sent.needed("kind")?, sent.needed("rate")?);
        let rate = Rate::parse_per_second(rate.trim()).map(Rate::steady).map_err(StoreError::Limit)?;
        if let Some(view) = known(&app).await?.iter().find(|view| is_of(view, kind)) {
            let has = view.limit.rate.map(|rate| format!(" of {rate}")).unwrap_or_default();
            return Err(Flash::refused(format!(
                "nothing was done: kind {kind} already has a limit{has}, which would be lost; change it with `milepost limits set`"
            )));
        }
        store.put_limit(&Limit::kind(kind, rate), Source::Operator).await?;
        Ok(format!("At most {rate} of kind {kind} start from now on."))
    };
    let done = done.await;
    sent.answer(done)
}

/// Removes a limit that an operator has set.
pub(super) async fn remove(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let target = match sent.field("kind") {
            Some(kind) => Target::Kind(kind.to_owned()),
            None => Target::Group(sent.needed("group")?.to_owned()),
        };
        let of_configuration =
            |view: &LimitView| view.limit.target == target && view.source == Source::Config;
        if known(&app).await?.iter().any(of_configuration) {
            return Err(Flash::refused(format!(
                "nothing was done: the limit of {target} comes from a configuration, which would set it again"
            )));
        }
        let was = store.remove_limit(&target, Source::Operator).await?;
        Ok(format!("{target} has no separate limit{}.", if was { " any more" } else { "; it had none" }))
    };
    let done = done.await;
    sent.answer(done)
}
