//! Retention periods of one thing: how long it is kept after it finished.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{InvalidRetention, RetentionPolicy};
use crate::duration;
use crate::named::named_enum;

/// How long something is kept after it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// For this period.
    For(Duration),
    /// Without a time limit.
    Forever,
}

impl Keep {
    /// Keeps for this number of days.
    #[must_use]
    pub const fn days(days: u32) -> Self {
        Self::For(Duration::from_secs(days as u64 * 24 * 3600))
    }

    /// Returns the period; `None` for [`Keep::Forever`].
    #[must_use]
    pub const fn period(self) -> Option<Duration> {
        match self {
            Self::For(period) => Some(period),
            Self::Forever => None,
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    /// Parses a duration such as `7d`, or `forever`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forever" => Ok(Self::Forever),
            text => duration::parse(text).map(Self::For).map_err(|e| format!("{e}; or give forever")),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(period) => f.write_str(&duration::exact(*period)),
            Self::Forever => f.write_str("forever"),
        }
    }
}

named_enum! {
    /// What has a retention period: the fields of [`RetentionPolicy`].
    Retained {
        /// Succeeded jobs.
        Succeeded = "succeeded",
        /// Canceled or skipped jobs.
        Canceled = "canceled",
        /// Dead letters.
        Failed = "failed",
        /// The history of ended jobs.
        History = "history",
        /// Keys of jobs.
        Keys = "keys",
        /// Stopped workers.
        Workers = "workers",
        /// Batches.
        Batches = "batches",
        /// Ids of processed events.
        Inbox = "inbox",
        /// Events in the log.
        Events = "events",
        /// Entries of the audit.
        Audit = "audit",
    }
}

impl Retained {
    /// Describes it for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded jobs",
            Self::Canceled => "canceled and skipped jobs",
            Self::Failed => "dead letters of jobs and inboxes",
            Self::History => "histories of ended jobs",
            Self::Keys => "keys of ended jobs",
            Self::Workers => "ended workers",
            Self::Batches => "batches",
            Self::Inbox => "ids of processed events",
            Self::Events => "events that all subscriptions have processed",
            Self::Audit => "entries of the audit",
        }
    }
}

/// How long one of the retained things is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPeriod {
    /// What it applies to.
    pub of: Retained,
    /// How long that is kept.
    pub keep: Keep,
}

impl RetentionPeriod {
    /// Rejects a period that no store can apply.
    ///
    /// # Errors
    /// As [`RetentionPolicy::check`].
    pub fn check(self) -> Result<(), InvalidRetention> {
        RetentionPolicy::default().with([self]).check()
    }
}
