//! `/jobs`: the list of jobs with filters. The filters are in the URL.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use jiff::{SignedDuration, Timestamp};
use milepost_core::ident::JobId;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::{JobSearch, LastFailure, PayloadMatch, time_of};
use milepost_core::state::JobState;

use super::deed::Deed;
use super::page::{Drawn, Page, draw};
use super::since;
use super::words::{self, cut, query};
use crate::app::App;
use crate::problem::Problem;

/// Number of jobs on a page.
const ROWS: usize = 50;
/// How long one request searches; older jobs are searched by the next request.
const PATIENCE: Duration = Duration::from_millis(50);

/// Number of jobs scanned by one query: few enough to be read from a disk in a few hundredths of a second.
const SCAN: u32 = 250;

/// A filter by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The name in the URL.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// `None`: any age.
    since: Option<SignedDuration>,
}

impl Window {
    const ANY: Self = Self { name: "any", label: "any time", since: None };
    const DAY: Self = Self::of("1d", "the last day", 24);
    const ALL: [Self; 5] = [
        Self::of("1h", "the last hour", 1),
        Self::DAY,
        Self::of("7d", "the last 7 days", 7 * 24),
        Self::of("30d", "the last 30 days", 30 * 24),
        Self::ANY,
    ];

    const fn of(name: &'static str, label: &'static str, hours: i64) -> Self {
        Self { name, label, since: Some(SignedDuration::from_hours(hours)) }
    }

    fn parse(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|window| window.name == name);
        named.ok_or_else(|| format!("created: {name:?} is invalid; expected 1h, 1d, 7d, 30d or any"))
    }
}

/// The filters.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    pub(super) state: Option<JobState>,
    pub(super) kind: String,
    pub(super) queue: String,
    pub(super) key: String,
    pub(super) error: String,
    pub(super) payload: String,
    /// The age filter, if one is selected.
    window: Option<Window>,
    /// The lower time bound: when failed jobs failed, when other jobs were created; as entered and as parsed.
    pub(super) since: String,
    since_at: Option<Timestamp>,
    before: Option<JobId>,
    payload_match: Option<PayloadMatch>,
}

impl Search {
    /// Parses the filters; empty fields are ignored.
    pub(super) fn read(url_query: &str) -> Result<Self, String> {
        let mut fields: HashMap<String, String> =
            form_urlencoded::parse(url_query.as_bytes()).into_owned().collect();
        let mut take =
            |name: &str| fields.remove(name).map(|value| value.trim().to_owned()).unwrap_or_default();
        let (state, payload, before) = (take("state"), take("payload"), take("before"));
        let (window, since) = (take("created"), take("since"));
        let state = (!state.is_empty())
            .then(|| state.parse::<JobState>())
            .transpose()
            .map_err(|error| error.to_string())?;
        let payload_match = (!payload.is_empty()).then(|| PayloadMatch::parse(&payload)).transpose()?;
        Ok(Self {
            state,
            window: (!window.is_empty()).then(|| Window::parse(&window)).transpose()?,
            since_at: (!since.is_empty()).then(|| since::read(&since)).transpose()?,
            since,
            kind: take("kind"),
            queue: take("queue"),
            key: take("key"),
            error: take("error"),
            before: before.parse().ok(),
            payload,
            payload_match,
        })
    }

    /// Returns the filters as a query, starting before this job.
    pub(super) fn query(&self, before: Option<JobId>) -> String {
        let before = before.map(|job| job.to_string()).unwrap_or_default();
        query(&[
            ("state", self.state.map_or("", JobState::as_str)),
            ("kind", &self.kind),
            ("queue", &self.queue),
            ("key", &self.key),
            ("error", &self.error),
            ("payload", &self.payload),
            (
                "created",
                self.window.filter(|window| *window != self.usual()).map_or("", |window| window.name),
            ),
            ("since", &self.since),
            ("before", &before),
        ])
    }

    /// Returns the filter of the stream that refreshes the page. Without a filter, only failures are streamed, since all changes
    /// of all jobs would be too many.
    fn stream(&self) -> String {
        let state = match self.state {
            None if self.kind.is_empty() && self.queue.is_empty() => Some(JobState::Failed),
            state => state,
        };
        query(&[("state", state.map_or("", JobState::as_str)), ("kind", &self.kind), ("queue", &self.queue)])
    }

    pub(super) fn window(&self) -> Window {
        self.window.unwrap_or(self.usual())
    }

    /// Payloads have no index: by default, only those of the last day are searched.
    fn usual(&self) -> Window {
        if self.payload.is_empty() || self.since_at.is_some() { Window::ANY } else { Window::DAY }
    }

    /// For failed jobs, the time bound applies to the failure, whatever the age of the job.
    fn is_of_failures(&self) -> bool {
        self.state == Some(JobState::Failed)
    }

    /// Describes the lower time bound.
    pub(super) fn since_words(&self) -> Option<String> {
        let what = if self.is_of_failures() { "that failed" } else { "created" };
        self.since_at.map(|at| format!("{what} since {at}"))
    }

    /// Returns the filters as a search of the store.
    pub(super) fn of_store(&self, now: Timestamp) -> JobSearch {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let in_window = self.window().since.and_then(|since| now.checked_sub(since).ok());
        let (created_from, failed_from) = if self.is_of_failures() {
            (in_window, self.since_at)
        } else {
            (in_window.max(self.since_at), None)
        };
        JobSearch {
            state: self.state,
            kind: some(&self.kind),
            queue: some(&self.queue),
            key: some(&self.key),
            error: some(&self.error),
            payload: self.payload_match.clone(),
            created_from,
            failed_from,
            before: self.before,
            ..JobSearch::default()
        }
    }

    /// Searches for at most `most` jobs within the time limit.
    async fn look(
        &self,
        most: usize,
        now: Timestamp,
        patience: Duration,
        store: &dyn Store,
    ) -> Result<Found, Problem> {
        let begun = Instant::now();
        let mut search = JobSearch { scan: Some(SCAN), ..self.of_store(now) };
        let mut found = Found::default();
        loop {
            search.limit = u32::try_from(most - found.jobs.len()).unwrap_or(u32::MAX);
            let page = store.search_jobs(&search).await?;
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
            search.before = page.next;
        }
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
    /// The most relevant time in its state, and what it means.
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
            kind: row.kind,
            queue: row.queue,
            key: row.key,
        }
    }
}

/// Returns the most relevant time and what it means.
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
    states: &'static [JobState],
    deeds: [Deed; 8],
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

pub(super) async fn list(State(app): State<App>, page: Page) -> Drawn {
    let (search, wrong) = match Search::read(page.url.split_once('?').map_or("", |(_, query)| query)) {
        Ok(search) => (search, None),
        Err(wrong) => (Search::default(), Some(wrong)),
    };
    // A job id in the key field opens that job.
    if let Ok(id) = search.key.parse::<JobId>()
        && app.store.job(id).await?.is_some()
    {
        return Ok(Redirect::to(&format!("/jobs/{id}")).into_response());
    }
    let found = match &wrong {
        Some(_) => Found::default(),
        None => search.look(ROWS, page.now, PATIENCE, app.store.as_ref()).await?,
    };
    let jobs = Jobs {
        stream: search.stream(),
        wrong,
        states: JobState::ALL,
        deeds: Deed::ALL,
        windows: Window::ALL,
        looked_to: found.next.filter(|_| found.gave_up).map(time_of),
        next: found.next.map(|job| search.query(Some(job))),
        later: search.before.is_some(),
        first: search.query(None),
        rows: found.jobs.into_iter().map(|job| Row::of(job, page.now)).collect(),
        search,
        page,
    };
    Ok(draw(&jobs))
}

impl Jobs {
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
        words::encoded(text)
    }
}
