//! `/dead-letters`: failed jobs, dead events of subscriptions, and dead letters and gaps of inboxes.

use askama::Template;
use axum::response::Response;
use milepost_core::actions::Action as _;
use milepost_core::actions::dead_letter::{DeadEventAction, LetterAction};
use milepost_core::event::listing::{AggregatePlace, DeadPlace};
use milepost_core::event::relay_listing::DeadView;
use milepost_core::ident::EventId;
use milepost_core::inbox::listing::{DeadFilter, DeadLetter, Gap, LetterId};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use serde::Deserialize;

use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::{cut, pretty, query};
use super::page::{Drawn, Page, draw};
use super::sublist::{PageLinks, Sublist};
use crate::api::cursor::Cursor;
use crate::app::App;
use crate::params::Query;

/// Maximum number of displayed rows of each list.
const ROWS: u32 = 50;
/// Number of characters of a reason that are shown without expanding it.
const WHY_CHARS: usize = 200;

/// The filter; empty fields are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    subscription: String,
    #[serde(default)]
    consumer: String,
    /// The cursors of the lists.
    #[serde(default)]
    events: String,
    #[serde(default)]
    letters: String,
    #[serde(default)]
    gaps: String,
}

impl Search {
    /// Returns the URL of the page with another cursor for this list.
    fn url(&self, list: &str, cursor: &str) -> String {
        let Self { subscription, consumer, events, letters, gaps } = self;
        let mut pairs = [
            ("subscription", &**subscription),
            ("consumer", consumer),
            ("events", events),
            ("letters", letters),
            ("gaps", gaps),
        ];
        for (_, at) in pairs.iter_mut().filter(|(name, _)| *name == list) {
            *at = cursor;
        }
        format!("/dead-letters?{}#{list}", query(&pairs))
    }
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct Letters {
    page: Page,
    failed_jobs: usize,
    events: Vec<(DeadView, Vec<Action>)>,
    event_ways: PageLinks,
    letters: Vec<(DeadLetter, Vec<Action>)>,
    letter_ways: PageLinks,
    gaps: Sublist<Gap>,
}

pub(super) async fn list(app: App, Query(search): Query<Search>, page: Page) -> Drawn {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (subscription, consumer) = (some(&search.subscription), some(&search.consumer));
    let failed = JobFilter { state: Some(JobState::Failed), limit: ROWS, ..JobFilter::default() };
    let before = search.letters.parse().ok().map(LetterId);
    let filter = DeadFilter { consumer: consumer.clone(), before, limit: ROWS + 1 };
    let event: Option<Cursor<DeadPlace>> = search.events.parse().ok();
    let gap: Option<Cursor<AggregatePlace>> = search.gaps.parse().ok();
    let _permit = app.large.permit().await;
    let (failed, events, letters, gaps) = tokio::try_join!(
        app.store.jobs(&failed),
        app.store.dead_events(subscription.as_deref(), event.as_ref().map(|Cursor(place)| place), ROWS + 1),
        app.store.dead_letters(&filter),
        app.store.gaps(consumer.as_deref(), gap.as_ref().map(|Cursor(place)| place), ROWS + 1)
    )?;
    let search = &search;
    let url = |list: &'static str| move |cursor: &str| search.url(list, cursor);
    let events =
        Sublist::of(events, ROWS, &search.events, |view| Cursor(view.place()), url("events")).newest_first();
    let letters = Sublist::of(letters, ROWS, &search.letters, |view| view.id, url("letters")).newest_first();
    let gaps = Sublist::of(gaps, ROWS, &search.gaps, |gap| Cursor(gap.place()), url("gaps"));
    let page_of = Letters {
        failed_jobs: failed.len(),
        events: with_actions(events.rows, |view, place| event_actions(view, place, &page)),
        event_ways: events.ways,
        letters: with_actions(letters.rows, |view, place| letter_actions(view, place, &page)),
        letter_ways: letters.ways,
        gaps,
        page,
    };
    Ok(draw(&page_of))
}

/// Adds the actions to each row. Their ids contain the position of the row.
fn with_actions<T>(rows: Vec<T>, actions: impl Fn(&T, usize) -> Vec<Action>) -> Vec<(T, Vec<Action>)> {
    let rows = rows.into_iter().enumerate();
    rows.map(|(place, row)| {
        let actions = actions(&row, place);
        (row, actions)
    })
    .collect()
}

impl Letters {
    fn cut(&self, text: &str) -> String {
        cut(text, WHY_CHARS)
    }

    fn is_cut(&self, text: &str) -> bool {
        text.chars().nth(WHY_CHARS).is_some()
    }

    fn pretty(&self, json: &str) -> String {
        pretty(json)
    }
}

fn event_actions(view: &DeadView, place: usize, page: &Page) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    let of = &view.event.aggregate;
    let named = format!("{} of {} {}", view.event.event_type, of.kind, of.id);
    let form = |action: DeadEventAction| {
        Action::new(page, action.as_str(), "/dead-letters/event", action)
            .asks(format!("{} {named}?", action.title()))
            .with(Field::hidden("subscription", &view.subscription))
            .with(Field::hidden("event", view.event.id.to_string()))
            .among(place)
    };
    DeadEventAction::ALL.iter().map(|&action| form(action)).collect()
}

fn letter_actions(view: &DeadLetter, place: usize, page: &Page) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    let (of, number) = (&view.aggregate, view.sequences.start());
    let named = format!("{} {} no. {number}", of.kind, of.id);
    let form = |action: LetterAction| {
        Action::new(page, format!("inbox-{action}"), "/dead-letters/inbox", action)
            .asks(format!("{} {named}?", action.title()))
            .with(Field::hidden("letter", view.id.to_string()))
            .among(place)
    };
    LetterAction::ALL.iter().map(|&action| form(action)).collect()
}

/// Retries or drops a dead event of a subscription.
pub(super) async fn change_event(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let (name, event) = (sent.needed("subscription")?, sent.needed("event")?);
        let event: EventId =
            event.parse().map_err(|_| Flash::refused("nothing was done: the id of the event is invalid"))?;
        let action: DeadEventAction = sent.operation()?;
        store.change_dead(name, event, action.verb()).await?;
        Ok(format!("Event {event} {}.", action.result()))
    };
    let done = done.await;
    sent.answer(done)
}

/// Retries or drops a dead letter of an inbox.
pub(super) async fn change_letter(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let letter: i64 = sent
            .read("letter")?
            .ok_or_else(|| Flash::refused("nothing was done: the id of the dead letter is missing"))?;
        let action: LetterAction = sent.operation()?;
        let letters = action.perform(&[LetterId(letter)], store.as_ref()).await?;
        Ok(format!("Dead letters that {}: {letters}.", action.result()))
    };
    let done = done.await;
    sent.answer(done)
}
