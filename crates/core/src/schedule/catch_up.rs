//! Due ticks: those on time and those that were missed.

use std::collections::VecDeque;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{InvalidSchedule, Schedule};
use crate::named::UnknownName;

/// The maximum number of missed ticks that one schedule catches up on.
pub const MISFIRE_MAX: u32 = 1000;
/// The default number of missed ticks that [`Misfire::All`] catches up on.
pub const MISFIRE_MAX_DEFAULT: u32 = 100;
/// The limit up to which dropped ticks are counted.
const COUNTED_MAX: u32 = 10_000;

/// What happens to missed ticks: ticks that no worker processed within their grace time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", tag = "policy")]
pub enum Misfire {
    /// They are dropped.
    Skip,
    /// One job or batch is created for all of them, with the nominal time of the last one.
    #[default]
    Once,
    /// Each one creates a job or a batch.
    All {
        /// The maximum number, most recent ticks first; older ones are dropped.
        max: u32,
    },
}

impl Misfire {
    /// Returns how many of the most recent missed ticks create a job or a batch.
    const fn kept(self) -> u32 {
        match self {
            Self::Skip => 0,
            Self::Once => 1,
            Self::All { max } => max,
        }
    }

    pub(super) fn check(self) -> Result<(), InvalidSchedule> {
        match self {
            Self::All { max } if !(1..=MISFIRE_MAX).contains(&max) => {
                Err(InvalidSchedule::MisfireMax { given: max, max: MISFIRE_MAX })
            }
            _ => Ok(()),
        }
    }

    /// Returns the policy with this name; `max` applies to `all`.
    ///
    /// # Errors
    /// [`UnknownName`] with the known names.
    pub fn named(name: &str, max: Option<u32>) -> Result<Self, UnknownName> {
        match name {
            "skip" => Ok(Self::Skip),
            "once" => Ok(Self::Once),
            "all" => Ok(Self::All { max: max.unwrap_or(MISFIRE_MAX) }),
            _ => Err(UnknownName { given: name.to_owned(), known: &["skip", "once", "all"] }),
        }
    }

    /// Returns its name in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All { .. } => "all",
        }
    }

    /// Returns the maximum number of missed ticks to catch up on, for the policy that has one.
    #[must_use]
    pub const fn max(self) -> Option<u32> {
        match self {
            Self::All { max } => Some(max),
            Self::Skip | Self::Once => None,
        }
    }
}

impl fmt::Display for Misfire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All { max } => write!(f, "all, up to {max}"),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// The result of processing due ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// The ticks that create a job or a batch, oldest first.
    pub fire: Vec<Timestamp>,
    /// The number of ticks that create nothing; counted up to 10,000.
    pub dropped: u32,
    /// The first tick that remains. It is already due when there were more ticks than one transaction processes.
    pub next_at: Option<Timestamp>,
}

impl Schedule {
    /// Returns what to do at `now`, where `first` is the first unprocessed tick and is due.
    #[must_use]
    pub fn catch_up(&self, first: Timestamp, now: Timestamp) -> CatchUp {
        let at_once = self.makes.at_once();
        let grace = SignedDuration::try_from(self.misfire_grace).unwrap_or(SignedDuration::MAX);
        let missed_before = now.checked_sub(grace).unwrap_or(Timestamp::MIN);
        let (mut fire, dropped) =
            if first < missed_before { self.missed(first, missed_before) } else { (vec![], 0) };

        let on_time = match fire.last() {
            Some(&last) => self.spec.next_after(last),
            None if first < missed_before => self.next_at_or_after(missed_before),
            None => Some(first),
        };
        let mut next_at = on_time;
        while let Some(tick) = next_at.filter(|tick| *tick <= now && fire.len() <= at_once) {
            fire.push(tick);
            next_at = self.spec.next_after(tick);
        }
        if fire.len() > at_once {
            next_at = Some(fire[at_once]);
            fire.truncate(at_once);
        }
        CatchUp { fire, dropped, next_at }
    }

    /// Splits the ticks from `first`, which is a tick, to `before`: returns those that create something, and the number of the others.
    fn missed(&self, first: Timestamp, before: Timestamp) -> (Vec<Timestamp>, u32) {
        let mut kept = VecDeque::new();
        let mut end = before;
        while kept.len() < self.misfire.kept() as usize && end > first {
            end = self.spec.last_between(first, end).unwrap_or(first);
            kept.push_front(end);
        }
        let mut dropped = 0;
        let mut tick = Some(first);
        while let Some(at) = tick.filter(|at| *at < end && dropped < COUNTED_MAX) {
            dropped += 1;
            tick = self.spec.next_after(at);
        }
        (kept.into(), dropped)
    }

    fn next_at_or_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.spec.next_after(at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at))
    }
}
