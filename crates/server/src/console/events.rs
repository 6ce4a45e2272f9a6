//! `/events`: subscriptions, parked aggregates and the event log.

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::parked::ParkedAction;
use milepost_core::actions::subscription::SubscriptionAction;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::{AggregatePlace, EventFilter, EventPage, LoggedEvent};
use milepost_core::event::relay_listing::{Delivery, ParkedVerb, ParkedView, Replay, SubscriptionView};
use milepost_core::ident::EventId;
use serde::Deserialize;

use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting};
use super::format::{between, count, cut, length, pretty, query, several};
use super::page::{Drawn, Page, draw};
use super::sublist::{PageLinks, Sublist};
use crate::api::cursor::Cursor;
use crate::app::App;
use crate::params::{Query, encoded};

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
    parked_ways: PageLinks,
    log: Vec<Logged>,
    next: Option<String>,
}

/// An event of the log, and what became of it for each subscription.
struct Logged {
    event: LoggedEvent,
    deliveries: Vec<Delivery>,
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

pub(super) async fn list(app: App, Query(search): Query<Search>, page: Page) -> Drawn {
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
    let _permit = app.large.permit().await;
    let (subscriptions, parked, log) = tokio::join!(
        app.known.subscriptions(&app.store),
        app.store.parked(only.as_deref(), after.as_ref().map(|Cursor(place)| place), PARKED + 1),
        app.store.events(&filter)
    );
    let (subscriptions, log) = (subscriptions?, log?);
    let ids: Vec<EventId> = log.iter().map(|event| event.event.id).collect();
    let deliveries = app.store.deliveries(&ids).await?;
    let next = log
        .last()
        .filter(|_| log.len() == EVENTS as usize)
        .map(|last| search.query(&last.pos.to_string(), &search.parked));
    let url = |cursor: &str| format!("/events?{}#parked", search.query(&search.before, cursor));
    let parked = Sublist::of(parked?, PARKED, &search.parked, |view| Cursor(view.place()), url);
    let (parked, parked_ways) = (parked.rows, parked.ways);
    let counted = subscriptions.is_some();
    let known = subscriptions.into_iter().flatten();
    let subscriptions = known.enumerate().map(|(place, view)| subscription(view, place, &page)).collect();
    let parked = parked.into_iter().enumerate().map(|(place, view)| parked_row(view, place, &page)).collect();
    let of =
        |event: &LoggedEvent| deliveries.iter().filter(|it| it.event == event.event.id).cloned().collect();
    let log = log.into_iter().map(|event| Logged { deliveries: of(&event), event }).collect();
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

fn subscription(view: SubscriptionView, place: usize, page: &Page) -> Subscription {
    let down = view.down();
    Subscription {
        lag: view.oldest_at.map_or_else(|| "–".to_owned(), |at| length(between(at, page.now))),
        down: down.map(|publisher| cut(publisher.down_why.as_deref().unwrap_or("no reason given"), 200)),
        actions: if page.viewer.operates { actions(&view, place, page) } else { Vec::new() },
        state: view.state(),
        view,
    }
}

fn actions(view: &SubscriptionView, place: usize, page: &Page) -> Vec<Action> {
    let name = &view.name;
    let replay = Action::new(page, "replay", "/events/replay", SubscriptionAction::Replay)
        .asks(format!("Replay events of {name}?"))
        .with(Field::hidden("subscription", name))
        .with(Field::shown("since", "All events since", "", "2026-11-01T00:00:00Z"))
        .with(Field::shown("aggregate_type", "Or events of one aggregate: its type", "", "order"))
        .with(Field::shown("aggregate_id", "Its id", "", "17"))
        .with(Field::shown("from", "First sequence", "", "1"))
        .among(place);
    let mut actions = vec![stop(view, page).among(place)];
    if view.parked_aggregates > 0 {
        actions.push(retry_parked(view, page).among(place));
    }
    actions.push(replay);
    actions
}

/// The button that pauses or resumes a subscription.
pub(super) fn stop(view: &SubscriptionView, page: &Page) -> Action {
    let name = &view.name;
    let action =
        if view.paused_at.is_some() { SubscriptionAction::Resume } else { SubscriptionAction::Pause };
    Action::new(page, format!("{action}-{}", encoded(name)), "/events/subscription", action)
        .asks(format!("{} {name}?", action.title()))
        .with(Field::hidden("subscription", name))
}

/// The button that retries all parked aggregates of a subscription.
pub(super) fn retry_parked(view: &SubscriptionView, page: &Page) -> Action {
    let (name, action) = (&view.name, SubscriptionAction::RetryParked);
    let aggregates = several(view.parked_aggregates.unsigned_abs(), "aggregate", "aggregates");
    Action::new(page, format!("{action}-{}", encoded(name)), "/events/subscription", action)
        .asks(format!("Retry the first events of {aggregates} in {name}?"))
        .with(Field::hidden("subscription", name))
}

fn parked_row(view: ParkedView, place: usize, page: &Page) -> Parked {
    let of = &view.first.aggregate;
    let form = |action: ParkedAction| {
        Action::new(page, action.as_str(), "/events/parked", action)
            .asks(format!("{} the first event of {} {}?", action.title(), of.kind, of.id))
            .with(Field::hidden("subscription", &view.subscription))
            .with(Field::hidden("aggregate_type", &of.kind))
            .with(Field::hidden("aggregate_id", &of.id))
            .with(Field::hidden("event", view.first.id.to_string()))
            .among(place)
    };
    let payload = pretty(view.first.payload.get());
    let with_payload = |form: Action| {
        let payload = Field::shown("payload", "Payload, JSON", &payload, "");
        form.with(payload.required().edited_as(Control::Json))
    };
    let forms = ParkedAction::ALL.iter().map(|&action| match action {
        ParkedAction::Edit => with_payload(form(action)),
        _ => form(action),
    });
    let actions = if page.viewer.operates { forms.collect() } else { Vec::new() };
    Parked { payload, actions, view }
}

/// Pauses or resumes a subscription.
pub(super) async fn operate(app: App, sent: Sent) -> Response {
    let done = async {
        let (reason, name) = (sent.reason()?, sent.needed("subscription")?);
        let store = acting(&app, &sent)?;
        match sent.operation()? {
            SubscriptionAction::Pause => {
                store.pause_subscription(name, &reason).await?;
                Ok(format!("Subscription {name} is paused."))
            }
            SubscriptionAction::Resume => {
                store.resume_subscription(name).await?;
                Ok(format!("Subscription {name} is resumed."))
            }
            SubscriptionAction::RetryParked => {
                let changed = store.change_all_parked(name, &ParkedVerb::Retry).await?;
                let retried = changed.iter().filter(|(_, is_changed)| *is_changed).count();
                let aggregates = several(retried as u64, "aggregate", "aggregates");
                Ok(format!("The first events of {aggregates} in {name} are retried now."))
            }
            SubscriptionAction::Replay => {
                Err(Flash::refused("nothing was done: a replay has its own form, which selects the events"))
            }
        }
    };
    let done = done.await;
    sent.answer(done)
}

/// Replays events.
pub(super) async fn replay(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let name = sent.needed("subscription")?;
        let since: Option<Timestamp> = sent.read("since")?;
        let replay = match (since, sent.field("aggregate_type"), sent.field("aggregate_id")) {
            (Some(since), None, None) => Replay::Since(since),
            (None, Some(of), Some(id)) => {
                Replay::Aggregate { aggregate: Aggregate::new(of, id), from: sent.read("from")?.unwrap_or(1) }
            }
            _ => return Err(Flash::refused("nothing was done: give a time, or type and id of an aggregate")),
        };
        let events = store.replay(name, &replay).await?;
        Ok(format!("{} events of {name} are published again, if its filter selects them.", count(events)))
    };
    let done = done.await;
    sent.answer(done)
}

/// Retries, edits or skips the first event of a parked aggregate.
pub(super) async fn change_parked(app: App, sent: Sent) -> Response {
    let done = async {
        let (name, store) = (sent.needed("subscription")?, acting(&app, &sent)?);
        let aggregate = Aggregate::new(sent.needed("aggregate_type")?, sent.needed("aggregate_id")?);
        let action: ParkedAction = sent.operation()?;
        let payload = sent.field("payload").filter(|_| action == ParkedAction::Edit);
        let verb = action.verb(payload).map_err(|error| Flash::refused(error.to_string()))?;
        store.change_parked(name, &aggregate, sent.read("event")?, &verb).await?;
        Ok(format!("{} {}: {}.", aggregate.kind, aggregate.id, action.result()))
    };
    let done = done.await;
    sent.answer(done)
}
