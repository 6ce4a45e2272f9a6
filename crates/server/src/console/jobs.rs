//! `/jobs`: the list of jobs with filters. The filters are in the URL.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use askama::Template;
use axum::response::{IntoResponse, Redirect};
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::job::JobAction;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, LastFailure};
use milepost_core::port::Store;
use milepost_core::search::{JobFilter, time_of};
use milepost_core::state::JobState;

use super::charts::Charts;
use super::filter_bar::{self, Chip, Tab};
use super::form::Action;
use super::format::cut;
use super::job_search::{Search, Window};
use super::page::{Drawn, Page, draw};
use super::start;
use crate::app::App;
use crate::params::encoded;
use crate::problem::Problem;

/// Number of jobs on a page.
const ROWS: usize = 50;
/// How long one request searches; older jobs are searched by the next request.
const PATIENCE: Duration = Duration::from_millis(50);

/// Number of jobs scanned by one query: few enough to be read from a disk in a few hundredths of a second.
const SCAN: u32 = 250;

/// Searches for at most `most` jobs within the time limit.
async fn look(
    search: &Search,
    most: usize,
    now: Timestamp,
    patience: Duration,
    store: &dyn Store,
) -> Result<Found, Problem> {
    let begun = Instant::now();
    let mut filter = JobFilter { scan: Some(SCAN), ..search.filter(now) };
    let mut found = Found::default();
    loop {
        filter.limit = u32::try_from(most - found.jobs.len()).unwrap_or(u32::MAX);
        let page = store.search_jobs(&filter).await?;
        let ids: Vec<JobId> = page.rows.iter().map(|row| row.id).collect();
        let failures = store.last_failures(&ids).await?;
        let mut failures: HashMap<JobId, LastFailure> =
            failures.into_iter().map(|failure| (failure.job, failure)).collect();
        found
            .jobs
            .extend(page.rows.into_iter().map(|row| FoundJob { failure: failures.remove(&row.id), row }));
        found.next = page.next;
        if page.next.is_none() || found.jobs.len() >= most {
            return Ok(found);
        }
        if begun.elapsed() > patience {
            found.gave_up = true;
            return Ok(found);
        }
        filter.before = page.next;
    }
}

/// A job and its last failure.
struct FoundJob {
    row: JobRow,
    failure: Option<LastFailure>,
}

/// The search result.
#[derive(Default)]
struct Found {
    jobs: Vec<FoundJob>,
    /// The position at which the search continues.
    next: Option<JobId>,
    /// Whether the time limit ended the search.
    gave_up: bool,
}

/// A job as a row of the list.
struct Row {
    id: JobId,
    kind: String,
    queue: String,
    key: Option<String>,
    state: &'static str,
    tries: String,
    /// The most relevant time in its state, and the event at that time.
    what: &'static str,
    at: Timestamp,
    created_at: Timestamp,
    failure: Option<String>,
}

impl Row {
    fn of(job: FoundJob, now: Timestamp) -> Self {
        let failure = job.failure.filter(|_| job.row.state != JobState::Succeeded).map(|failure| {
            let words: Vec<&str> =
                [failure.code.as_deref(), failure.message.as_deref()].into_iter().flatten().collect();
            cut(&words.join(": "), 160)
        });
        let row = job.row;
        let (what, at) = when(&row, now);
        Self {
            id: row.id,
            what,
            at,
            tries: format!("{}/{}", row.attempt, row.max_attempts),
            state: row.state.as_str(),
            created_at: row.created_at,
            failure,
            key: row.chosen_key().map(str::to_owned),
            kind: row.kind,
            queue: row.queue,
        }
    }
}

/// Returns the most relevant time of a job, and the event at that time.
fn when(row: &JobRow, now: Timestamp) -> (&'static str, Timestamp) {
    match (row.state, row.ready_at, row.started_at, row.ended_at) {
        (JobState::Pending | JobState::RetryWait, Some(at), _, _) if at > now => ("due", at),
        (JobState::Running, _, Some(at), _) => ("began", at),
        (state, _, _, Some(at)) if state.is_ended() => ("ended", at),
        _ => ("created", row.created_at),
    }
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct Jobs {
    page: Page,
    search: Search,
    /// The error in the filters.
    wrong: Option<String>,
    /// The filter of the stream that refreshes the page.
    stream: String,
    tabs: Vec<Tab>,
    chips: Vec<Chip>,
    actions: &'static [JobAction],
    /// The form that creates a job, for operators.
    create: Option<Action>,
    /// Of the queue and kind in the filter.
    charts: Option<Charts>,
    rows: Vec<Row>,
    windows: [Window; 5],
    /// The time that the search has reached, if it is incomplete.
    looked_to: Option<Timestamp>,
    next: Option<String>,
    /// Whether it is not the first page.
    later: bool,
    /// The query of the first page.
    first: String,
}

pub(super) async fn list(app: App, page: Page) -> Drawn {
    let (search, wrong) = match Search::read(page.url.split_once('?').map_or("", |(_, query)| query)) {
        Ok(search) => (search, None),
        Err(wrong) => (Search::default(), Some(wrong)),
    };
    // A job id in the key field opens that job.
    if let Some(Ok(id)) = search.filter.key.as_ref().map(|key| key.parse::<JobId>())
        && app.store.job(id).await?.is_some()
    {
        return Ok(Redirect::to(&format!("/jobs/{id}")).into_response());
    }
    let found = match &wrong {
        Some(_) => Found::default(),
        None => look(&search, ROWS, page.now, PATIENCE, app.store.as_ref()).await?,
    };
    let queues = if filter_bar::is_countable(&search) { app.known.queues(&app.store).await? } else { None };
    let [kind, queue, ..] = search.texts();
    let jobs = Jobs {
        stream: search.stream(),
        wrong,
        tabs: filter_bar::tabs(&search, queues.as_deref()),
        chips: filter_bar::chips(&search),
        actions: JobAction::ALL,
        create: start::job_form(&page, kind, queue),
        charts: Charts::of(queue, kind),
        windows: Window::ALL,
        looked_to: found.next.filter(|_| found.gave_up).map(time_of),
        next: found.next.map(|job| search.query(Some(job))),
        later: search.filter.before.is_some(),
        first: search.query(None),
        rows: found.jobs.into_iter().map(|job| Row::of(job, page.now)).collect(),
        search,
        page,
    };
    Ok(draw(&jobs))
}

impl Jobs {
    /// Returns the title: the state and the kind of the filter, and the number of jobs if it is counted.
    fn title(&self) -> String {
        let [kind, ..] = self.search.texts();
        let state = self.search.state().map(JobState::as_str);
        let parts: Vec<&str> = state.into_iter().chain([kind]).filter(|part| !part.is_empty()).collect();
        let count = self.tabs.iter().find(|tab| tab.is_current).and_then(|tab| tab.jobs.as_ref());
        let count = count.map_or_else(String::new, |count| format!(" ({count})"));
        if parts.is_empty() { format!("Jobs{count}") } else { format!("Jobs: {}{count}", parts.join(", ")) }
    }

    /// Returns whether any filter is set.
    fn is_narrowed(&self) -> bool {
        !self.first.is_empty()
    }

    /// Returns whether the age filter is set.
    fn is_windowed(&self) -> bool {
        self.search.window() != Window::ANY
    }

    /// Encodes a text for a URL.
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}
