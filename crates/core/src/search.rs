//! Job search by content. A search reads a limited number of the newest jobs at a time, so that its duration is bounded however many
//! jobs exist.

use jiff::Timestamp;
use serde_json::Value;

use crate::ident::JobId;
use crate::state::JobState;

/// The maximum number of jobs that a search reads before it returns: few enough for 10 to 20 ms.
pub const SCAN_MAX: u32 = 5_000;
/// The maximum depth of a path into a payload.
pub const PATH_DEPTH_MAX: usize = 16;

/// The smallest set of rows that contains every possible match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPlace {
    /// Jobs with the key.
    Key,
    /// Running jobs.
    Running,
    /// Unfinished jobs in the given state that are neither claimable nor running.
    LiveAside,
    /// Ended jobs in the given state that did not succeed.
    EndedAside,
    /// Unfinished jobs.
    Live,
    /// Ended jobs.
    Ended,
    /// All jobs.
    All,
}

impl SearchPlace {
    /// Returns its name in SQL.
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

/// A value at a path of a payload.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadMatch {
    /// The names of the members on the path, outermost first; a number can also be an array index, from 0.
    pub path: Vec<String>,
    /// The expected value.
    pub value: Value,
}

/// Which jobs to find, newest first, and which page of them. A job must match all given fields.
#[derive(Clone, Debug)]
pub struct JobFilter {
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only in this queue.
    pub queue: Option<String>,
    /// Only those with this key.
    pub key: Option<String>,
    /// Only those with a failed attempt that has this error code, or this text in its message (case-insensitive).
    pub error: Option<String>,
    /// Only those whose payload matches.
    pub payload: Option<PayloadMatch>,
    /// Only those created at this time or later.
    pub created_from: Option<Timestamp>,
    /// Only those created before this time.
    pub created_before: Option<Timestamp>,
    /// Only those that failed permanently at this time or later, and are still failed.
    pub failed_from: Option<Timestamp>,
    /// Only those older than this one: the position where the previous page ended.
    pub before: Option<JobId>,
    /// The number of jobs that a search reads before it returns; `None`: [`SCAN_MAX`], which is also the maximum.
    pub scan: Option<u32>,
    /// The maximum number of results.
    pub limit: u32,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self {
            state: None,
            kind: None,
            queue: None,
            key: None,
            error: None,
            payload: None,
            created_from: None,
            created_before: None,
            failed_from: None,
            before: None,
            scan: None,
            limit: 50,
        }
    }
}

impl JobFilter {
    /// Returns whether the jobs themselves must be searched, because no index finds them: for errors, payloads and times, and for a kind
    /// or a queue, of which few jobs may match among many. A key identifies its jobs.
    #[must_use]
    pub fn needs_search(&self) -> bool {
        let of_some = self.key.is_none() && (self.kind.is_some() || self.queue.is_some());
        let times = [self.created_from, self.created_before, self.failed_from];
        of_some || self.error.is_some() || self.payload.is_some() || times.iter().any(Option::is_some)
    }
}

impl JobFilter {
    /// Returns the set of rows to search.
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

    /// Returns how many jobs to read.
    #[must_use]
    pub fn scan(&self) -> u32 {
        self.scan.unwrap_or(SCAN_MAX).clamp(1, SCAN_MAX)
    }

    /// Returns the lowest id that a job created at or after `created_from` can have. Ids begin with the time of the clock where they were
    /// generated, which may be off by a day.
    #[must_use]
    pub fn oldest(&self) -> JobId {
        let from = self.created_from.map_or(0, |from| from.as_millisecond() - DAY_MS);
        JobId(uuid_at(from))
    }

    /// Returns the upper bound of the search: every job that is read has a lower id.
    #[must_use]
    pub fn newest(&self) -> JobId {
        let until = self.created_before.map(|until| JobId(uuid_at(until.as_millisecond() + DAY_MS)));
        match (self.before, until) {
            (Some(before), Some(until)) => before.min(until),
            (before, until) => before.or(until).unwrap_or(JobId(uuid::Uuid::max())),
        }
    }
}

/// Returns the time in the id, by the clock where it was generated.
#[must_use]
pub fn time_of(job: JobId) -> Timestamp {
    let ms = u64::try_from(job.0.as_u128() >> 80).unwrap_or(0);
    Timestamp::from_millisecond(ms.cast_signed()).unwrap_or(Timestamp::MAX)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the lowest id of a millisecond.
fn uuid_at(ms: i64) -> uuid::Uuid {
    let ms = u64::try_from(ms).unwrap_or(0).min((1 << 48) - 1);
    uuid::Uuid::from_u128(u128::from(ms) << 80)
}

impl PayloadMatch {
    /// Parses `path=value`: member names separated by dots, and a value that is JSON or else text.
    ///
    /// # Errors
    /// A message with the missing part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(format!("{text:?} is not of the form path=value, such as customer.id=42"));
        };
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) || path.len() > PATH_DEPTH_MAX {
            let words = "a path must be 1 to 16 names separated by dots";
            return Err(format!("{text:?}: {words}"));
        }
        if text.contains('\0') {
            return Err("the value contains a NUL character, which no payload contains".to_owned());
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
        let search = JobFilter { created_from: Some(at), created_before: Some(at), ..JobFilter::default() };
        let day = |id: JobId| time_of(id).as_millisecond() - at.as_millisecond();
        assert_eq!((day(search.oldest()), day(search.newest())), (-DAY_MS, DAY_MS));
        let open = JobFilter::default();
        assert_eq!((open.oldest().0, open.newest().0), (uuid::Uuid::nil(), uuid::Uuid::max()));
    }
}
