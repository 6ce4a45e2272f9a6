//! Errors of schedules.

use thiserror::Error;

use crate::batch::error::InvalidBatch;
use crate::job::error::InvalidJob;

/// An invalid schedule. Nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidSchedule {
    /// A name that is empty, too long, `.` or `..`, or contains control or bidirectional formatting characters.
    #[error(
        "the name {name:?} is invalid: it must have 1 to 200 bytes, and no control characters, characters that change the direction of text, or line separators; and it cannot be . or .."
    )]
    Name {
        /// The name, shortened.
        name: String,
    },
    /// A cron expression with too few or too many fields.
    #[error(
        "the cron expression {text:?} has {found} fields; it must have 5 (minute, hour, day of month, month, day of week), or 6 with seconds first"
    )]
    Fields {
        /// The expression, shortened.
        text: String,
        /// The number of fields.
        found: usize,
    },
    /// A cron expression that is too long.
    #[error(
        "the cron expression {text:?}… has {bytes} bytes; it must have at most {bytes_max}: use ranges and steps"
    )]
    TooLong {
        /// The beginning of the expression.
        text: String,
        /// Its length.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// A field of a cron expression that cannot be parsed.
    #[error("the {field} field {value:?} of the cron expression is invalid; allowed are {allowed}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value, shortened.
        value: String,
        /// A description of the allowed values.
        allowed: &'static str,
    },
    /// A word that begins with `@` and is not a known macro.
    #[error("{text:?} is unknown; expected one of: {known}, or \"@every\" with an interval")]
    Macro {
        /// The word, shortened.
        text: String,
        /// The known ones.
        known: &'static str,
    },
    /// A cron expression that matches no date.
    #[error("the cron expression {text:?} never fires: there is no such date")]
    Never {
        /// The expression.
        text: String,
    },
    /// An invalid interval.
    #[error(
        "the interval {text:?} is invalid; it must be a whole number of seconds from 1s to 366 days, such as 30s, 10m or 1h30m"
    )]
    Interval {
        /// The interval.
        text: String,
    },
    /// An unknown time zone.
    #[error("there is no time zone {given:?}; {}", did_you_mean(.nearest))]
    Zone {
        /// The given name, shortened.
        given: String,
        /// Similar known names, best match first.
        nearest: Vec<String>,
    },
    /// The maximum number of missed ticks is out of range.
    #[error("the maximum of misfire \"all\" is {given} missed ticks; it must be from 1 to {max}")]
    MisfireMax {
        /// The given number.
        given: u32,
        /// The highest possible number.
        max: u32,
    },
    /// The job of its ticks is invalid.
    #[error("its job is invalid: {0}")]
    Job(InvalidJob),
    /// The batch of its ticks is invalid.
    #[error("its batch is invalid: {0}")]
    Batch(InvalidBatch),
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => "zones have names such as Europe/Berlin, America/New_York or UTC".to_owned(),
        names => format!("the nearest names are {}", names.join(", ")),
    }
}
