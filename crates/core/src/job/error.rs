//! The reason why a job cannot be accepted.

use jiff::Timestamp;
use thiserror::Error;

use crate::state::JobState;

/// A job that cannot be accepted. Nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidJob {
    /// A kind, queue, key or group that is empty, too long or contains control characters. Kinds and queues with
    /// bidirectional formatting characters are invalid too.
    #[error("the {field} {value:?} is invalid: {why}")]
    Name {
        /// The field.
        field: &'static str,
        /// Its value, shortened.
        value: String,
        /// The reason.
        why: String,
    },
    /// The payload is not JSON.
    #[error("the payload is not JSON: {why}")]
    NotJson {
        /// The parser's message, with line and column.
        why: String,
    },
    /// A number of a definition is so large that reading it lost digits.
    #[error(
        "the payload has the number {number}, whose digits a definition cannot keep; the largest is {max}; write it as text",
        max = u64::MAX
    )]
    LargeNumber {
        /// The number, rounded to a double.
        number: String,
    },
    /// The payload contains a NUL character, which PostgreSQL's jsonb cannot store.
    #[error("the payload holds a NUL character (\\u0000), which cannot be stored")]
    Nul,
    /// An object has a member with which a JSON library passes values between its own types: it would read the object as another value.
    #[error("the payload has a member whose name begins with \"{prefix}\", which is reserved; rename it")]
    ReservedMember {
        /// The beginning of the name.
        prefix: &'static str,
    },
    /// The start time is before 1970, which not every store can keep.
    #[error("start_at is {start_at}; it must not be before 1970")]
    StartsTooEarly {
        /// The start that was given.
        start_at: Timestamp,
    },
    /// The payload is larger than the limit.
    #[error("the payload has {bytes} bytes; the limit is {bytes_max} (payload_bytes_max)")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The configured limit.
        bytes_max: usize,
    },
    /// The payload is nested more deeply than JSON readers accept.
    #[error("the payload is nested {depth} levels deep; the limit is {depth_max}")]
    TooDeep {
        /// Its nesting depth.
        depth: usize,
        /// The limit.
        depth_max: usize,
    },
    /// A number outside its valid range.
    #[error("{field} is {value}; it must be {range}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
        /// The range, in words.
        range: &'static str,
    },
    /// The kind is the name of a bulk job. Runs of a bulk job get queue, group and attempts from its definition.
    #[error("the kind {kind:?} is a bulk job; start it with `milepost bulk start`, or start_bulk in SQL")]
    BulkJob {
        /// The kind.
        kind: String,
    },
    /// The rule for duplicates is invalid, or does not fit the job.
    #[error("on_duplicate is invalid: {why}")]
    OnDuplicate {
        /// The reason.
        why: &'static str,
    },
    /// The job that holds the key cannot be replaced, because it is in another queue or group, which never change.
    #[error(
        "the job that holds the key {key:?} is in another queue or group, which on_duplicate cannot change; give the same queue and group, \
         or another key"
    )]
    HolderElsewhere {
        /// The key, shortened.
        key: String,
    },
    /// A run of a bulk job reads its parameters in every attempt, from a cursor that fits them.
    #[error("the payload of a run of a bulk job cannot be edited; cancel it, and start another run")]
    EditsBulkRun,
    /// An edit that changes nothing.
    #[error("the edit changes nothing; give a payload, a priority, a start or a maximum number of attempts")]
    EditsNothing,
    /// A job that has failed or was aborted does not wait for a time.
    #[error("a job that is {state} has no start; give a delay when you retry it")]
    NoStart {
        /// Its state.
        state: JobState,
    },
    /// The database rejected the values for another reason.
    #[error("the database rejected the job: {why}")]
    Refused {
        /// The database's message.
        why: String,
    },
}

impl InvalidJob {
    /// Returns the field of a request that is invalid, if it is one.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Name { field, .. } => Some(field),
            Self::NotJson { .. }
            | Self::LargeNumber { .. }
            | Self::Nul
            | Self::ReservedMember { .. }
            | Self::PayloadTooLarge { .. }
            | Self::TooDeep { .. }
            | Self::EditsBulkRun => Some("payload"),
            Self::StartsTooEarly { .. } | Self::NoStart { .. } => Some("start_at"),
            Self::OnDuplicate { .. } => Some("on_duplicate"),
            Self::HolderElsewhere { .. } => Some("key"),
            Self::BulkJob { .. } => Some("kind"),
            Self::OutOfRange { .. } | Self::EditsNothing | Self::Refused { .. } => None,
        }
    }
}
