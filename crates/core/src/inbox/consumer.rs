//! How patient a consumer is.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::InvalidInbox;
use crate::duration::WAIT_MAX;
use crate::job::{NAME_BYTES_MAX, check_name};
use crate::state::named_enum;

/// How long events wait for one that is missing before them, unless their consumer says otherwise.
pub const GAP_WAIT_DEFAULT: Duration = Duration::from_secs(600);
/// How many events of an aggregate wait at most, unless their consumer says otherwise.
pub const PARKED_MAX_DEFAULT: u32 = 1_000;
/// The most that a consumer may let wait of one aggregate.
pub const PARKED_MAX_LIMIT: u32 = 100_000;

/// What a consumer wants of its inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// How long events wait for one that is missing before them, from the first that waits.
    pub gap_wait: Duration,
    /// How many of one aggregate wait at most.
    pub parked_max: u32,
    /// What happens when they have waited for too long, or are too many.
    pub gap_policy: GapPolicy,
    /// Whether the first event that is seen of an aggregate is taken in whatever its sequence; those before it are duplicates then.
    pub begins_anywhere: bool,
}

impl Consumer {
    /// A consumer as it is by itself.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            gap_wait: GAP_WAIT_DEFAULT,
            parked_max: PARKED_MAX_DEFAULT,
            gap_policy: GapPolicy::DeadLetter,
            begins_anywhere: false,
        }
    }

    /// Checks that it can be so.
    ///
    /// # Errors
    /// [`InvalidInbox`] says what is wrong.
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
    /// What happens to events that wait for one that does not come.
    GapPolicy {
        /// They are kept for a person, and no later ones of the aggregate are taken in. When the missing one comes after all,
        /// everything goes on by itself.
        DeadLetter = "dead_letter",
        /// The consumer goes on without the missing ones. That they never came is kept for a person.
        SkipGap = "skip_gap",
    }
}
