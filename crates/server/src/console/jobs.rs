//! `/jobs`: the list of jobs with filters. The filters are in the URL.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use jiff::{SignedDuration, Timestamp};
use milepost_core::actions::Action as _;
use milepost_core::actions::job::JobAction;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, LastFailure};
use milepost_core::port::Store;
use milepost_core::search::{JobFilter, PayloadMatch, time_of};
use milepost_core::state::JobState;

use super::format::{cut, query};
use super::page::{Drawn, Page, draw};
use super::time_input;
use crate::app::App;
use crate::params::encoded;
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

/// The filters, as the user has entered them.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// State, kind, queue, key, error and payload, and the position of the page.
    filter: JobFilter,
    payload: String,
    /// The age filter, if one is selected.
    window: Option<Window>,
    /// The lower time bound: when failed jobs failed, when other jobs were created; as entered and as parsed.
    since: String,
    since_at: Option<Timestamp>,
}

impl Search {
    /// Parses the filters; empty fields are ignored.
    pub(super) fn read(url_query: &str) -> Result<Self, String> {
        let fields: HashMap<String, String> =
            form_urlencoded::parse(url_query.as_bytes()).into_owned().collect();
        let field = |name: &str| fields.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let owned = |name: &str| field(name).map(str::to_owned);
        let state = field("state").map(str::parse::<JobState>).transpose();
        let filter = JobFilter {
            state: state.map_err(|unknown| unknown.to_string())?,
            kind: owned("kind"),
            queue: owned("queue"),
            key: owned("key"),
            error: owned("error"),
            payload: field("payload").map(PayloadMatch::parse).transpose()?,
            before: field("before").and_then(|before| before.parse().ok()),
            ..JobFilter::default()
        };
        Ok(Self {
            filter,
            payload: owned("payload").unwrap_or_default(),
            window: field("created").map(Window::parse).transpose()?,
            since_at: field("since").map(time_input::read).transpose()?,
            since: owned("since").unwrap_or_default(),
        })
    }

    /// Returns the filters as a query, starting before this job.
    pub(super) fn query(&self, before: Option<JobId>) -> String {
        let before = before.map(|job| job.to_string()).unwrap_or_default();
        let [kind, queue, key, error] = self.texts();
        query(&[
            ("state", self.filter.state.map_or("", JobState::as_str)),
            ("kind", kind),
            ("queue", queue),
            ("key", key),
            ("error", error),
            ("payload", &self.payload),
            (
                "created",
                self.window.filter(|window| *window != self.usual()).map_or("", |window| window.name),
            ),
            ("since", &self.since),
            ("before", &before),
        ])
    }

    /// Returns kind, queue, key and error; empty if they are not given.
    fn texts(&self) -> [&str; 4] {
        let JobFilter { kind, queue, key, error, .. } = &self.filter;
        [kind, queue, key, error].map(|text| text.as_deref().unwrap_or_default())
    }

    /// Returns the filter of the stream that refreshes the page. Without a filter, only failures are streamed, since all changes
    /// of all jobs would be too many.
    fn stream(&self) -> String {
        let [kind, queue, ..] = self.texts();
        let state = match self.filter.state {
            None if kind.is_empty() && queue.is_empty() => Some(JobState::Failed),
            state => state,
        };
        query(&[("state", state.map_or("", JobState::as_str)), ("kind", kind), ("queue", queue)])
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
        self.filter.state == Some(JobState::Failed)
    }

    /// Describes the lower time bound.
    pub(super) fn since_words(&self) -> Option<String> {
        let what = if self.is_of_failures() { "that failed" } else { "created" };
        self.since_at.map(|at| format!("{what} since {at}"))
    }

    /// Returns the filter of the jobs, with the bounds of the age filter at this time.
    pub(super) fn filter(&self, now: Timestamp) -> JobFilter {
        let in_window = self.window().since.and_then(|since| now.checked_sub(since).ok());
        let (created_from, failed_from) = if self.is_of_failures() {
            (in_window, self.since_at)
        } else {
            (in_window.max(self.since_at), None)
        };
        JobFilter { created_from, failed_from, ..self.filter.clone() }
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
        let mut filter = JobFilter { scan: Some(SCAN), ..self.filter(now) };
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
    actions: &'static [JobAction],
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
    if let Some(Ok(id)) = search.filter.key.as_ref().map(|key| key.parse::<JobId>())
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
        actions: JobAction::ALL,
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
