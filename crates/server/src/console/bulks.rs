//! `/bulk`: runs of bulk jobs with progress, rate and throttling.

use std::collections::HashMap;

use askama::Template;
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::bulk_run::RunAction;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::operation;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use serde::Deserialize;

use super::bulk_speed;
use super::form::Action;
use super::format::{between, count, cut, length, per_second, query};
use super::paces::Paces;
use super::page::{Drawn, Page, draw};
use super::start;
use crate::app::App;
use crate::params::{Query, encoded};
use crate::problem::{Code, Problem};

/// Maximum number of runs on a page.
const ROWS: u32 = 100;
/// The maximum id: the cursor at which the finished runs begin.
const NEWEST: JobId = JobId(uuid::Uuid::max());
/// A run as a row of the list.
pub(super) struct Row {
    pub(super) id: JobId,
    pub(super) name: String,
    pub(super) labels: String,
    pub(super) state: &'static str,
    pub(super) stopping: bool,
    pub(super) turn: String,
    pub(super) progress: String,
    pub(super) passed: u64,
    /// At least 1, for the bar.
    pub(super) total: Option<u64>,
    pub(super) bar: &'static str,
    pub(super) rate: Option<String>,
    pub(super) eta: Option<String>,
    pub(super) throttle: Option<String>,
    pub(super) failed: u64,
    pub(super) at: Timestamp,
    pub(super) actions: Vec<Action>,
}

impl Row {
    pub(super) fn of(view: BulkView, paces: &Paces, page: &Page) -> Self {
        let (rate, eta) = paces.learn(&view, page.now);
        let bar = match view.state {
            JobState::Succeeded => "done",
            JobState::Failed => "bad",
            _ => "",
        };
        let since = |at: Option<Timestamp>| {
            at.map_or_else(String::new, |at| format!(" for {}", length(between(at, page.now))))
        };
        let held = held(&view);
        Self {
            labels: labels(view.r#type.as_ref(), view.category.as_ref()),
            state: view.state.as_str(),
            stopping: view.stopping.is_some(),
            turn: turn(&view, page.now),
            progress: progress(&view),
            passed: view.passed(),
            total: view.total.map(|total| total.rows.max(view.passed()).max(1)),
            bar,
            rate: rate.map(per_second),
            eta,
            throttle: held.map(|why| format!("{}{}", cut(why, 200), since(view.throttle_since))),
            failed: view.counts.failed,
            at: view.ended_at.or(view.updated_at).unwrap_or(view.created_at),
            actions: actions(&view, page),
            id: view.id,
            name: title(&view),
        }
    }
}

/// Returns the title of a run: of an operation on many jobs what it does, of others the name of the bulk job.
fn title(view: &BulkView) -> String {
    let done = view.file.as_ref().filter(|_| view.name == operation::NAME).map(|file| &file.name);
    done.unwrap_or(&view.name).clone()
}

/// Returns the address of the page of a bulk job.
pub(super) fn url(name: &str) -> String {
    format!("/bulk-definitions/{}", encoded(name))
}

/// Formats the labels of a bulk job.
pub(super) fn labels_of(definition: &Definition) -> String {
    labels(definition.labels.r#type.as_ref(), definition.labels.category.as_ref())
}

fn labels(r#type: Option<&String>, category: Option<&String>) -> String {
    r#type.into_iter().chain(category).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns the reason for which a run is throttled, also while it is pending until its next check.
pub(super) fn held(view: &BulkView) -> Option<&String> {
    view.throttle.as_ref().filter(|_| matches!(view.state, JobState::Running | JobState::Pending))
}

/// Returns the error messages or notes of aborted and failed runs.
pub(super) async fn why_stopped(
    bulks: &[BulkView],
    store: &dyn Store,
) -> Result<HashMap<JobId, String>, StoreError> {
    let stands = |bulk: &&BulkView| matches!(bulk.state, JobState::Aborted | JobState::Failed);
    let ids: Vec<JobId> = bulks.iter().filter(stands).map(|bulk| bulk.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let changes = store.last_changes(&ids).await?;
    // Runs that have been resumed since are not included.
    let stopped = changes.into_iter().filter(|it| matches!(it.to, JobState::Aborted | JobState::Failed));
    let said = stopped.filter_map(|it| Some((it.job, it.error_message.or(it.note)?)));
    Ok(said.collect())
}

/// Formats the progress: `12,300 of 1,000,000 (1.2 %)`. The percentage is rounded down, so that 100 % means all.
fn progress(view: &BulkView) -> String {
    let passed = count(view.passed());
    let Some(total) = view.total else { return format!("{passed} targets") };
    let about = if total.exact { "" } else { "about " };
    let percent = view.share().map_or(0.0, |share| (share * 1000.0).floor() / 10.0);
    format!("{passed} of {about}{} ({percent:.1} %)", count(total.rows))
}

/// Describes the start time, or the position in the group.
fn turn(view: &BulkView, now: Timestamp) -> String {
    match (view.state, view.next, view.due_at) {
        (JobState::Blocked | JobState::Pending, _, Some(at)) if view.started_at.is_none() && at > now => {
            format!("starts {}", super::format::relative(at, now))
        }
        (JobState::Blocked, Some(1), _) => "next in its group".to_owned(),
        (JobState::Blocked, Some(place), _) => format!("number {place} in its group"),
        _ => String::new(),
    }
}

/// Says which run it is, where several of a bulk job are in one list.
fn standing_of(view: &BulkView) -> String {
    let id = view.id.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    format!("run …{end} with {} targets done", super::format::count(view.counts.done))
}

/// The actions of a run: abort, resume and cancel, and a change of its speed while it lives. An aborted run keeps its cursor.
pub(super) fn actions(view: &BulkView, page: &Page) -> Vec<Action> {
    if !page.viewer.operates {
        return Vec::new();
    }
    let form = |action: RunAction| {
        let id = view.id;
        let asked = format!("{} {}, {}?", action.title(), view.name, standing_of(view));
        Action::new(page, format!("{action}-{id}"), format!("/bulk/{id}/operate"), action).asks(asked)
    };
    let offered = RunAction::ALL.iter().filter(|action| action.is_offered_for(view));
    let speed = view.state.is_live().then(|| bulk_speed::form(view, page));
    offered.map(|&action| form(action)).chain(speed).collect()
}

/// The filter; empty fields are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    state: String,
    #[serde(default)]
    before: String,
}

#[derive(Template)]
#[template(path = "bulks.html")]
struct Bulks {
    page: Page,
    states: &'static [JobState],
    /// The selected state.
    wanted: Option<JobState>,
    /// The state whose changes are streamed to the page.
    told: JobState,
    rows: Vec<Row>,
    definitions: Vec<Defined>,
    /// Whether more unfinished runs exist than are shown: they have no order in which a next page could begin.
    more_wait: bool,
    next: Option<String>,
    /// Whether it is not the first page.
    later: bool,
    /// The query of the first page.
    first: String,
}

/// A bulk job that workers have registered.
struct Defined {
    definition: Definition,
    url: String,
    labels: String,
    start: Option<Action>,
}

impl Defined {
    fn of((place, definition): (usize, Definition), page: &Page) -> Self {
        let start = start::run_form(page, &definition, place);
        Self { labels: labels_of(&definition), url: url(&definition.name), start, definition }
    }
}

impl Bulks {
    fn is_narrowed(&self) -> bool {
        self.wanted.is_some() || self.later
    }
}

pub(super) async fn list(app: App, Query(search): Query<Search>, page: Page) -> Drawn {
    let state = Some(search.state.trim()).filter(|state| !state.is_empty());
    let state = state
        .map(str::parse::<JobState>)
        .transpose()
        .map_err(|error| Problem::new(Code::InvalidParameter, error.to_string()).at("query state"))?;
    let before: Option<JobId> = search.before.parse().ok();
    let filter = BulkFilter { state, before, limit: ROWS + 1, ..BulkFilter::default() };
    let (mut views, definitions) = tokio::try_join!(app.store.bulks(&filter), app.store.bulk_definitions())?;
    let beyond = views.get(ROWS as usize).map(BulkView::is_over);
    views.truncate(ROWS as usize);
    let next = beyond.and_then(|is_over| after(&views, is_over, state));
    let url = |before: Option<JobId>| {
        let before = before.map(|run| run.to_string()).unwrap_or_default();
        query(&[("state", state.map_or("", JobState::as_str)), ("before", &before)])
    };
    Ok(draw(&Bulks {
        states: JobState::ALL,
        wanted: state,
        told: told(state),
        rows: views.into_iter().map(|view| Row::of(view, &app.paces, &page)).collect(),
        definitions: definitions
            .into_iter()
            .filter(|its| its.name != operation::NAME)
            .enumerate()
            .map(|its| Defined::of(its, &page))
            .collect(),
        more_wait: beyond == Some(false),
        next: next.map(|run| url(Some(run))),
        later: before.is_some(),
        first: url(None),
        page,
    }))
}

/// Returns the cursor of the next page. `is_over`: whether the first run beyond this page has finished.
fn after(shown: &[BulkView], is_over: bool, state: Option<JobState>) -> Option<JobId> {
    match shown.last() {
        Some(last) if last.is_over() => Some(last.id),
        // Finished runs follow unfinished ones. With a state filter, the list contains only one of the two.
        _ => (is_over || state.is_none()).then_some(NEWEST),
    }
}

/// Returns the state whose changes are streamed to the page. Streaming all changes would be too much: aborted or canceled jobs if
/// that state is selected, otherwise failed ones.
fn told(state: Option<JobState>) -> JobState {
    state.filter(|state| matches!(state, JobState::Aborted | JobState::Canceled)).unwrap_or(JobState::Failed)
}
