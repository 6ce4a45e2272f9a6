//! Alerts, the incidents that record them, and which of them a target is notified of.
//!
//! An *alert* is a problem of the store that a server observes now, identified by its rule and its subject. An *incident* is the record of an alert from
//! its first to its last observation. A *notice* notifies a target that an incident has begun or has ended.

mod incident;
mod notice;
mod rule;

pub use incident::{
    ActiveAlert, AlertKey, Incident, IncidentFilter, IncidentTimes, Severity, Silence, SilenceUntil,
};
pub use notice::{
    AlertTarget, Candidate, NoticeClaim, NoticeOutcome, NoticeRules, NoticeTimes, Notices, Stage, retry_wait,
};
pub use rule::AlertRule;

use std::time::Duration;

/// The maximum number of alerts of one observation; further ones, warnings first, are not recorded.
pub const ALERTS_MAX: usize = 200;
/// The maximum number of incidents that one claim of notices considers.
pub const CANDIDATES_MAX: u32 = 1_000;
/// The maximum number of old incidents that one observation deletes.
pub const PRUNED_MAX: i64 = 500;
/// The maximum size of each text of an alert, in bytes.
pub const TEXT_BYTES_MAX: usize = 2_000;
/// The maximum size of the subject of an alert, in bytes.
pub const SUBJECT_BYTES_MAX: usize = 500;
/// How long a notice that an incident has ended is attempted.
pub const ENDED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest silence for a time.
pub const SILENCE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// How long after its last use by a server a target counts as configured.
pub const TARGET_IN_USE: Duration = Duration::from_secs(10 * 60);
