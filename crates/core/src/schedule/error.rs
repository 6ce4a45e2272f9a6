//! What can be wrong with a schedule.

use thiserror::Error;

use crate::batch::error::InvalidBatch;
use crate::error::InvalidJob;

/// A schedule that cannot be accepted as it is. Nothing of it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidSchedule {
    /// A name that is empty, too long or has control characters.
    #[error("the name {name:?} is not usable: names have 1 to 200 bytes and no control characters")]
    Name {
        /// The name, shortened.
        name: String,
    },
    /// A cron expression with too few or too many fields.
    #[error(
        "the cron expression {text:?} has {found} fields; it takes 5 (minute, hour, day of month, month, day of week), or 6 with seconds first"
    )]
    Fields {
        /// The expression, shortened.
        text: String,
        /// How many fields it has.
        found: usize,
    },
    /// A field of a cron expression that cannot be read.
    #[error("the {field} field {value:?} of the cron expression is not usable; allowed are {allowed}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What stands in it, shortened.
        value: String,
        /// What may stand in it, in words.
        allowed: &'static str,
    },
    /// A word with an `@` that is not one of the known ones.
    #[error("{text:?} is not known; known are {known}, and \"@every\" with a length of time")]
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
    /// An interval that cannot be used.
    #[error(
        "the interval {text:?} is not usable; it is a whole number of seconds from 1s to 366 days, such as 30s, 10m or 1h30m"
    )]
    Interval {
        /// The interval.
        text: String,
    },
    /// A time zone that nobody knows.
    #[error("there is no time zone {given:?}; {}", did_you_mean(.nearest))]
    Zone {
        /// What was given, shortened.
        given: String,
        /// Known names that look like it, best first.
        nearest: Vec<String>,
    },
    /// More missed ticks to make up for than one schedule may.
    #[error("misfire \"all\" makes up for {given} missed ticks; it must be from 1 to {max}")]
    MisfireMax {
        /// What was given.
        given: u32,
        /// The most that is possible.
        max: u32,
    },
    /// The job that its ticks would enqueue.
    #[error("its job cannot be accepted: {0}")]
    Job(InvalidJob),
    /// The batch that its ticks would start.
    #[error("its batch cannot be accepted: {0}")]
    Batch(InvalidBatch),
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => "zones have names such as Europe/Berlin, America/New_York or UTC".to_owned(),
        names => format!("the nearest names are {}", names.join(", ")),
    }
}
