//! Looking for jobs by what is in them: a stretch of the newest ones at a time, so that no question takes long however many there are.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::ident::JobId;
use crate::listing::JobRow;
use crate::state::JobState;

/// How many jobs a search looks at before it answers with what it has: few enough for a hundredth of a second or two.
pub const SCAN_MAX: u32 = 5_000;
/// How far a path into a payload goes down.
pub const PATH_DEPTH_MAX: usize = 16;

/// Which jobs to look for, newest first.
#[derive(Clone, Debug, Default)]
pub struct JobSearch {
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only in this queue.
    pub queue: Option<String>,
    /// Only those with this key.
    pub key: Option<String>,
    /// Only those of which an attempt failed with this code, or with this in its message, whatever the case of its letters.
    pub error: Option<String>,
    /// Only those whose payload has this.
    pub payload: Option<PayloadMatch>,
    /// Only those created at this time or later.
    pub created_from: Option<Timestamp>,
    /// Only those created before this time.
    pub created_before: Option<Timestamp>,
    /// Only those that failed for good at this time or later, and still are.
    pub failed_from: Option<Timestamp>,
    /// Only those older than this one: where the page before ended.
    pub before: Option<JobId>,
    /// Answer after a look at so many; `None`, and at most: [`SCAN_MAX`].
    pub scan: Option<u32>,
    /// At most this many.
    pub limit: u32,
}

/// Where jobs are looked for: the fewest that hold all that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPlace {
    /// Those with the key.
    Key,
    /// Those that run.
    Running,
    /// Those in the state among the ones that need attention and neither wait for a worker nor run.
    LiveAside,
    /// Those in the state among the ones that ended, but not well.
    EndedAside,
    /// Those that need attention.
    Live,
    /// Those that ended.
    Ended,
    /// All.
    All,
}

impl SearchPlace {
    /// Its name in SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Running => "running",
            Self::LiveAside => "live_aside",
            Self::EndedAside => "ended_aside",
            Self::Live => "live",
            Self::Ended => "ended",
            Self::All => "all",
        }
    }
}

/// A value at a place of a payload.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadMatch {
    /// The members that lead there, from the outside in; a number is also a place in an array, from 0.
    pub path: Vec<String>,
    /// What is there.
    pub value: Value,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct JobsFound {
    /// The jobs, newest first.
    pub rows: Vec<JobRow>,
    /// Where the next page goes on; `None`: all was looked at. There may be one although nothing was found.
    pub next: Option<JobId>,
}

/// The last failed attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastFailure {
    /// Which job.
    #[serde(skip)]
    pub job: JobId,
    /// When it failed.
    pub at: Timestamp,
    /// A stable name of the failure, such as `exec_1`.
    pub code: Option<String>,
    /// The failure in words; in lists the first [`LISTED_CHARS_MAX`] characters.
    pub message: Option<String>,
}

/// How much of the message of a failure a list shows, in characters.
pub const LISTED_CHARS_MAX: i32 = 500;

impl JobsFound {
    /// The page of the jobs that were found, at most `limit` of them, when the look ended at `looked_to`, or at the last of all.
    #[must_use]
    pub fn page(rows: Vec<JobRow>, limit: u32, looked_to: Option<JobId>) -> Self {
        let is_full = rows.len() >= limit as usize;
        let next = if is_full { rows.last().map(|row| row.id) } else { looked_to };
        Self { rows, next }
    }
}

impl JobSearch {
    /// Where to look.
    #[must_use]
    pub fn place(&self) -> SearchPlace {
        use JobState::{Aborted, Blocked, Canceled, Failed, Pending, RetryWait, Running, Skipped, Succeeded};
        match self.state {
            _ if self.key.is_some() => SearchPlace::Key,
            Some(Running) => SearchPlace::Running,
            Some(Blocked | RetryWait | Failed | Aborted) => SearchPlace::LiveAside,
            Some(Canceled | Skipped) => SearchPlace::EndedAside,
            Some(Pending) => SearchPlace::Live,
            Some(Succeeded) => SearchPlace::Ended,
            None => SearchPlace::All,
        }
    }

    /// How many jobs to look at.
    #[must_use]
    pub fn scan(&self) -> u32 {
        self.scan.unwrap_or(SCAN_MAX).clamp(1, SCAN_MAX)
    }

    /// The oldest id that a job can have which was created no earlier than is asked for: ids begin with their time, by the clock of whoever
    /// made them, which may be off by a day.
    #[must_use]
    pub fn oldest(&self) -> JobId {
        let from = self.created_from.map_or(0, |from| from.as_millisecond() - DAY_MS);
        JobId(uuid_at(from))
    }

    /// Every job that is looked at is older than this one.
    #[must_use]
    pub fn newest(&self) -> JobId {
        let until = self.created_before.map(|until| JobId(uuid_at(until.as_millisecond() + DAY_MS)));
        match (self.before, until) {
            (Some(before), Some(until)) => before.min(until),
            (before, until) => before.or(until).unwrap_or(JobId(uuid::Uuid::max())),
        }
    }
}

/// The time that an id begins with, by the clock of whoever made it.
#[must_use]
pub fn time_of(job: JobId) -> Timestamp {
    let ms = u64::try_from(job.0.as_u128() >> 80).unwrap_or(0);
    Timestamp::from_millisecond(ms.cast_signed()).unwrap_or(Timestamp::MAX)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The lowest id of a millisecond.
fn uuid_at(ms: i64) -> uuid::Uuid {
    let ms = u64::try_from(ms).unwrap_or(0).min((1 << 48) - 1);
    uuid::Uuid::from_u128(u128::from(ms) << 80)
}

impl PayloadMatch {
    /// What `path=value` says: members with dots between, and JSON, or else text.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(format!("{text:?} is no path=value, such as customer.id=42"));
        };
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) || path.len() > PATH_DEPTH_MAX {
            let words = "a path is 1 to 16 names with dots between";
            return Err(format!("{text:?}: {words}"));
        }
        if text.contains('\0') {
            return Err("no payload has a NUL in it".to_owned());
        }
        let value = value.trim();
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { path, value })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_and_its_value_are_read() {
        let read = |text| PayloadMatch::parse(text).map(|found| (found.path.join("/"), found.value));
        assert_eq!(read("customer.id=42"), Ok(("customer/id".to_owned(), json!(42))));
        assert_eq!(read("to = ada@example.org"), Ok(("to".to_owned(), json!("ada@example.org"))));
        assert_eq!(read("id=\"42\""), Ok(("id".to_owned(), json!("42"))));
        assert_eq!(read("lines.0.text=a=b"), Ok(("lines/0/text".to_owned(), json!("a=b"))));
        assert_eq!(read("gone=null"), Ok(("gone".to_owned(), Value::Null)));
        for text in ["", "customer", "=1", "a..b=1", "a.=1", &format!("{}=1", vec!["a"; 17].join("."))] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_of_time_is_one_of_ids_with_a_day_at_each_end() {
        let at: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let search = JobSearch { created_from: Some(at), created_before: Some(at), ..JobSearch::default() };
        let day = |id: JobId| time_of(id).as_millisecond() - at.as_millisecond();
        assert_eq!((day(search.oldest()), day(search.newest())), (-DAY_MS, DAY_MS));
        let open = JobSearch::default();
        assert_eq!((open.oldest().0, open.newest().0), (uuid::Uuid::nil(), uuid::Uuid::max()));
    }
}
