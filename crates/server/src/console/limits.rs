//! Rate limits that operators set on a kind to slow it down, and their removal.

use axum::extract::State;
use axum::response::Response;
use milepost_core::actions::limit::LimitAction;
use milepost_core::error::StoreError;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target};

use super::alert::Alert;
use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::several;
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
    let noun = if matches!(target, Target::Kind(_)) { "kind" } else { "group" };
    let id = format!("lift-{noun}-{}", encoded(target.name()));
    let action = Action::new(page, id, "/limits/remove", LimitAction::Remove)
        .asks(format!("Remove the limit of {target}?"))
        .with(Field::hidden(noun, target.name()));
    (page.viewer.operates && view.source == Source::Operator).then_some(action)
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
            error: false,
            title: format!("Kind {kind} is slowed down"),
            words: format!(
                "At most {rate} of its jobs start; {}.",
                several(view.waiting.unsigned_abs(), "job waits", "jobs wait")
            ),
            url: format!("/jobs?state=pending&kind={}", encoded(kind)),
            actions: lift(view, page).into_iter().collect(),
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
pub(super) async fn set(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let (kind, rate) = (sent.needed("kind")?, sent.needed("rate")?);
        let rate = Rate::parse_per_second(rate).map(Rate::steady).map_err(StoreError::Limit)?;
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
pub(super) async fn remove(State(app): State<App>, sent: Sent) -> Response {
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
