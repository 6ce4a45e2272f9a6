//! `/events`: subscriptions, parked aggregates and the event log.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::{AggregatePlace, EventFilter, EventPage, LoggedEvent};
use milepost_core::event::relay_listing::{ParkedVerb, ParkedView, Replay, SubscriptionView};
use serde::Deserialize;

use super::act::{Action, Field, Sent, acting};
use super::flash::Flash;
use super::page::{Drawn, Page, draw};
use super::part::{Part, Ways};
use super::words::{between, count, cut, encoded, length, pretty, query};
use crate::api::cursor::Cursor;
use crate::app::App;
use crate::params::Query;

/// Maximum number of displayed parked aggregates.
const PARKED: u32 = 50;
/// Maximum number of displayed events of the log.
const EVENTS: u32 = 50;

/// The filter; empty fields are ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    subscription: String,
    #[serde(default)]
    aggregate_type: String,
    #[serde(default)]
    aggregate_id: String,
    #[serde(default)]
    event_type: String,
    #[serde(default)]
    before: String,
    /// The cursor of the list of parked aggregates.
    #[serde(default)]
    parked: String,
}

impl Search {
    /// Returns the query with other cursors for the log and for the parked aggregates.
    fn query(&self, before: &str, parked: &str) -> String {
        let Self { subscription, aggregate_type, aggregate_id, event_type, .. } = self;
        query(&[
            ("subscription", subscription),
            ("aggregate_type", aggregate_type),
            ("aggregate_id", aggregate_id),
            ("event_type", event_type),
            ("before", before),
            ("parked", parked),
        ])
    }
}

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    page: Page,
    search: Search,
    counted: bool,
    subscriptions: Vec<Subscription>,
    parked: Vec<Parked>,
    parked_ways: Ways,
    log: Vec<LoggedEvent>,
    next: Option<String>,
}

struct Subscription {
    view: SubscriptionView,
    lag: String,
    state: &'static str,
    /// The error of its sink.
    down: Option<String>,
    actions: Vec<Action>,
}

struct Parked {
    view: ParkedView,
    payload: String,
    actions: Vec<Action>,
}

pub(super) async fn list(State(app): State<App>, Query(search): Query<Search>, page: Page) -> Drawn {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let aggregate = (!search.aggregate_type.is_empty() && !search.aggregate_id.is_empty())
        .then(|| Aggregate::new(search.aggregate_type.clone(), search.aggregate_id.clone()));
    let filter = EventFilter {
        aggregate,
        event_type: some(&search.event_type),
        page: EventPage::Before(search.before.parse().ok()),
        limit: EVENTS,
    };
    let only = some(&search.subscription);
    let after: Option<Cursor<AggregatePlace>> = search.parked.parse().ok();
    let (subscriptions, parked, log) = tokio::join!(
        app.known.subscriptions(&app.store),
        app.store.parked(only.as_deref(), after.as_ref().map(|Cursor(place)| place), PARKED + 1),
        app.store.events(&filter)
    );
    let (subscriptions, log) = (subscriptions?, log?);
    let next = log
        .last()
        .filter(|_| log.len() == EVENTS as usize)
        .map(|last| search.query(&last.pos.to_string(), &search.parked));
    let url = |cursor: &str| format!("/events?{}#parked", search.query(&search.before, cursor));
    let parked = Part::of(parked?, PARKED, &search.parked, |view| Cursor(view.place()), url);
    let (parked, parked_ways) = (parked.rows, parked.ways);
    let counted = subscriptions.is_some();
    let known = subscriptions.into_iter().flatten();
    let subscriptions = known.enumerate().map(|(place, view)| subscription(view, place, &page)).collect();
    let parked = parked.into_iter().enumerate().map(|(place, view)| parked_row(view, place, &page)).collect();
    Ok(draw(&Events { page, search, counted, subscriptions, parked, parked_ways, log, next }))
}

impl Events {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    fn cut(&self, text: &str) -> String {
        cut(text, 160)
    }
}

/// Returns the state of a subscription.
pub(super) fn standing(view: &SubscriptionView) -> &'static str {
    let is_down = view.publishers.iter().any(|publisher| publisher.down_since.is_some());
    if view.reseed_needed {
        "halted"
    } else if view.paused_at.is_some() {
        "paused"
    } else if view.halted_aggregates > 0 {
        "halted"
    } else if is_down {
        "down"
    } else if view.publishers.is_empty() {
        "unserved"
    } else {
        "ok"
    }
}

fn subscription(view: SubscriptionView, place: usize, page: &Page) -> Subscription {
    let down = view.publishers.iter().find(|publisher| publisher.down_since.is_some());
    Subscription {
        lag: view.oldest_at.map_or_else(|| "–".to_owned(), |at| length(between(at, page.now))),
        down: down.map(|publisher| cut(publisher.down_why.as_deref().unwrap_or("no reason given"), 200)),
        actions: if page.viewer.operates { actions(&view, place, page) } else { Vec::new() },
        state: standing(&view),
        view,
    }
}

fn actions(view: &SubscriptionView, place: usize, page: &Page) -> Vec<Action> {
    let name = &view.name;
    let replay = Action::new(page, "replay", "/events/replay", "Replay")
        .asks(
            format!("Replay events of {name}?"),
            "Publishes events again: those of one aggregate from a sequence on, or all since a time. Receivers without an inbox get them twice.",
        )
        .with(Field::hidden("subscription", name))
        .with(Field::shown("since", "All events since", "", "2026-11-01T00:00:00Z"))
        .with(Field::shown("aggregate_type", "Or events of one aggregate: its type", "", "order"))
        .with(Field::shown("aggregate_id", "Its id", "", "17"))
        .with(Field::shown("from", "First sequence", "", "1"))
        .danger()
        .with_reason()
        .among(place);
    vec![stop(view, page).among(place), replay]
}

/// The button that pauses or resumes a subscription.
pub(super) fn stop(view: &SubscriptionView, page: &Page) -> Action {
    let name = &view.name;
    let act = |label, deed: &str| {
        Action::new(page, format!("{deed}-{}", encoded(name)), "/events/subscription", label)
            .with(Field::hidden("subscription", name))
            .with(Field::hidden("deed", deed))
            .with_reason()
    };
    if view.paused_at.is_some() {
        act("Resume", "resume").asks(format!("Resume {name}?"), "Publishing continues from its position.")
    } else {
        let effect =
            "No events are published until an operator resumes it. Events in flight are completed first.";
        act("Pause", "pause").asks(format!("Pause {name}?"), effect).danger()
    }
}

fn parked_row(view: ParkedView, place: usize, page: &Page) -> Parked {
    let act = |id: &str, label, deed: &str| {
        let of = &view.first.aggregate;
        Action::new(page, id, "/events/parked", label)
            .with(Field::hidden("subscription", &view.subscription))
            .with(Field::hidden("aggregate_type", &of.kind))
            .with(Field::hidden("aggregate_id", &of.id))
            .with(Field::hidden("deed", deed))
            .with_reason()
            .among(place)
    };
    let payload = pretty(view.first.payload.get());
    let of = format!("{} {}", view.first.aggregate.kind, view.first.aggregate.id);
    let actions = if page.viewer.operates {
        vec![
            act("retry", "Retry", "retry")
                .asks(format!("Retry the first event of {of} now?"), "It gets all its attempts again."),
            act("edit", "Edit", "edit")
                .asks(
                    format!("Publish the first event of {of} with another payload?"),
                    "The log keeps the original payload.",
                )
                .with(Field {
                    required: true,
                    long: true,
                    ..Field::shown("payload", "Payload, JSON", &payload, "")
                }),
            act("skip", "Skip", "skip")
                .asks(
                    format!("Skip the first event of {of}?"),
                    "It is kept as skipped, and publishing continues with the next one.",
                )
                .danger(),
        ]
    } else {
        Vec::new()
    };
    Parked { payload, actions, view }
}

/// Pauses or resumes a subscription.
pub(super) async fn operate(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        let (reason, name) = (sent.reason()?, sent.needed("subscription")?);
        let store = acting(&app, &sent);
        match sent.needed("deed")? {
            "pause" => {
                store.pause_subscription(name, &reason).await?;
                Ok(format!("Subscription {name} is paused."))
            }
            "resume" => {
                store.resume_subscription(name).await?;
                Ok(format!("Subscription {name} is resumed."))
            }
            other => Err(Flash::refused(format!(
                "nothing was done: unknown operation {other:?}; expected pause or resume"
            ))),
        }
    };
    let done = done.await;
    sent.answer(done)
}

/// Replays events.
pub(super) async fn replay(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        sent.reason()?;
        let name = sent.needed("subscription")?;
        let since: Option<Timestamp> = sent.read("since")?;
        let replay = match (since, sent.field("aggregate_type"), sent.field("aggregate_id")) {
            (Some(since), None, None) => Replay::Since(since),
            (None, Some(of), Some(id)) => {
                Replay::Aggregate { aggregate: Aggregate::new(of, id), from: sent.read("from")?.unwrap_or(1) }
            }
            _ => return Err(Flash::refused("nothing was done: give a time, or type and id of an aggregate")),
        };
        let events = acting(&app, &sent).replay(name, &replay).await?;
        Ok(format!("{} events of {name} are published again.", count(events)))
    };
    let done = done.await;
    sent.answer(done)
}

/// Retries, edits or skips the first event of a parked aggregate.
pub(super) async fn change_parked(State(app): State<App>, sent: Sent) -> Response {
    let done = async {
        sent.reason()?;
        let name = sent.needed("subscription")?;
        let aggregate = Aggregate::new(sent.needed("aggregate_type")?, sent.needed("aggregate_id")?);
        let (verb, words) = match sent.needed("deed")? {
            "retry" => (ParkedVerb::Retry, "is retried now"),
            "skip" => (ParkedVerb::Skip, "was skipped; publishing continues with the next one"),
            "edit" => {
                let payload = sent.needed("payload")?;
                let edit = ParkedVerb::edit(payload).map_err(|error| Flash::refused(error.to_string()))?;
                (edit, "was edited and is retried now")
            }
            other => {
                return Err(Flash::refused(format!(
                    "nothing was done: unknown operation {other:?}; expected retry, skip or edit"
                )));
            }
        };
        acting(&app, &sent).change_parked(name, &aggregate, &verb).await?;
        Ok(format!("The first event of {} {} {words}.", aggregate.kind, aggregate.id))
    };
    let done = done.await;
    sent.answer(done)
}
