//! Settings of consumers: how long they wait for missing events, and what happens afterwards.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::InvalidInbox;
use crate::duration::WAIT_MAX;
use crate::job::{NAME_BYTES_MAX, check_name};
use crate::named::named_enum;

/// The default time that events wait for a missing predecessor.
pub const GAP_WAIT_DEFAULT: Duration = Duration::from_secs(600);
/// The default maximum number of waiting events of an aggregate.
pub const PARKED_MAX_DEFAULT: u32 = 1_000;
/// The upper limit of that setting.
pub const PARKED_MAX_LIMIT: u32 = 100_000;

/// The inbox settings of a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// How long events wait for a missing predecessor, counted from the first waiting event.
    pub gap_wait: Duration,
    /// The maximum number of waiting events of one aggregate.
    pub parked_max: u32,
    /// What happens when they have waited too long, or are too many.
    pub gap_policy: GapPolicy,
    /// Whether the first event received of an aggregate is accepted with any sequence; events before it are then duplicates.
    pub begins_anywhere: bool,
}

impl Consumer {
    /// Creates a consumer with default settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            gap_wait: GAP_WAIT_DEFAULT,
            parked_max: PARKED_MAX_DEFAULT,
            gap_policy: GapPolicy::DeadLetter,
            begins_anywhere: false,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`InvalidInbox`] with the reason.
    pub fn check(&self) -> Result<(), InvalidInbox> {
        check_name("name of the consumer", &self.name, NAME_BYTES_MAX).map_err(InvalidInbox::Name)?;
        if self.gap_wait > WAIT_MAX {
            return Err(InvalidInbox::GapWait);
        }
        match self.parked_max {
            1..=PARKED_MAX_LIMIT => Ok(()),
            parked_max => Err(InvalidInbox::ParkedMax(parked_max)),
        }
    }
}

named_enum! {
    /// What happens to events that wait for an event that does not arrive.
    GapPolicy {
        /// They become dead letters, and no later events of the aggregate are taken in. If the missing one arrives later,
        /// processing continues automatically.
        DeadLetter = "dead_letter",
        /// The consumer continues without the missing events. A dead letter records that they never arrived.
        SkipGap = "skip_gap",
    }
}
