//! The filters of the list of jobs, as the URL has them.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use milepost_core::ident::JobId;
use milepost_core::search::{JobFilter, PayloadMatch};
use milepost_core::state::JobState;

use super::format::query;
use super::time_input;

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
    pub(super) const ANY: Self = Self { name: "any", label: "any time", since: None };
    const DAY: Self = Self::of("1d", "the last day", 24);
    pub(super) const ALL: [Self; 5] = [
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
    pub(super) filter: JobFilter,
    pub(super) payload: String,
    /// The age filter, if one is selected.
    window: Option<Window>,
    /// The lower time bound: when failed jobs failed, when other jobs were created; as entered and as parsed.
    pub(super) since: String,
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

    /// Returns the filters by their names in the URL; empty if they are not set.
    pub(super) fn fields(&self) -> [(&'static str, &str); 8] {
        let [kind, queue, key, error] = self.texts();
        let window = self.window.filter(|window| *window != self.usual());
        [
            ("state", self.filter.state.map_or("", JobState::as_str)),
            ("kind", kind),
            ("queue", queue),
            ("key", key),
            ("error", error),
            ("payload", &self.payload),
            ("created", window.map_or("", |window| window.name)),
            ("since", &self.since),
        ]
    }

    pub(super) const fn state(&self) -> Option<JobState> {
        self.filter.state
    }

    pub(super) fn queue(&self) -> Option<&str> {
        self.filter.queue.as_deref()
    }

    /// Returns the filters as a query, starting before this job.
    pub(super) fn query(&self, before: Option<JobId>) -> String {
        let before = before.map(|job| job.to_string()).unwrap_or_default();
        query(&[self.fields().as_slice(), &[("before", &before)]].concat())
    }

    /// Returns kind, queue, key and error; empty if they are not given.
    pub(super) fn texts(&self) -> [&str; 4] {
        let JobFilter { kind, queue, key, error, .. } = &self.filter;
        [kind, queue, key, error].map(|text| text.as_deref().unwrap_or_default())
    }

    /// Returns the filter of the stream that refreshes the page. Without a filter, only failures are streamed, since all changes
    /// of all jobs would be too many.
    pub(super) fn stream(&self) -> String {
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
    pub(super) fn is_of_failures(&self) -> bool {
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
}
