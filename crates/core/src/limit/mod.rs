//! Limits of kinds and of groups: start rates and concurrency.
//!
//! A **kind** can have a rate. A **group** can have slots (the maximum number of its jobs that are in flight at the
//! same time), a rate, or both. A *class* of groups, `prefix:*`, applies to each group whose name starts with the
//! prefix and a colon, unless that group has its own limit.

mod bucket;
mod rate;

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::job::{NAME_BYTES_MAX, check_key, check_name};

pub use crate::schedule::Source;
pub use rate::Rate;

/// The default number of slots of a group: jobs in flight at the same time.
pub const SLOTS_DEFAULT: u32 = 1;
/// The maximum number of slots of a group.
pub const SLOTS_MAX: u32 = 1000;

/// What a limit applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// All jobs of a kind.
    Kind(String),
    /// The jobs of a group, or those of each group of a class `prefix:*`.
    Group(String),
}

impl Target {
    /// Returns the name of the kind, the group or the class.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Kind(name) | Self::Group(name) => name,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(name) => write!(f, "kind {name}"),
            Self::Group(name) => write!(f, "group {name}"),
        }
    }
}

/// Returns the class of a group: `prefix:*`, where the prefix is the part of its name before the first `:`.
#[must_use]
pub fn class_of(group: &str) -> Option<String> {
    group.split_once(':').map(|(prefix, _)| format!("{prefix}:*"))
}

/// A limit: a rate, a concurrency, or both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The kind, group or class that is limited.
    #[serde(flatten)]
    pub target: Target,
    /// The maximum number of jobs of the group that are in flight at the same time; `None` for a kind, and for a group
    /// that has only a rate.
    pub slots: Option<u32>,
    /// The maximum rate of starts.
    #[serde(flatten)]
    pub rate: Option<Rate>,
}

impl Limit {
    /// Creates a limit for the start rate of a kind.
    #[must_use]
    pub fn kind(kind: impl Into<String>, rate: Rate) -> Self {
        Self { target: Target::Kind(kind.into()), slots: None, rate: Some(rate) }
    }

    /// Creates a limit of a group, or of each group of a class `prefix:*`, without slots and rate.
    #[must_use]
    pub fn group(group: impl Into<String>) -> Self {
        Self { target: Target::Group(group.into()), slots: None, rate: None }
    }

    /// Sets the maximum number of jobs in flight.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Sets the maximum rate of starts.
    #[must_use]
    pub const fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Checks the limit.
    ///
    /// # Errors
    /// [`InvalidLimit`] with the reason.
    pub fn check(&self) -> Result<(), InvalidLimit> {
        check_key("name", self.target.name(), NAME_BYTES_MAX)
            .map_err(|invalid| InvalidLimit::Name { why: invalid.to_string() })?;
        if let Target::Kind(kind) = &self.target {
            check_name("kind", kind, NAME_BYTES_MAX)
                .map_err(|invalid| InvalidLimit::Name { why: invalid.to_string() })?;
        }
        match (&self.target, self.slots, self.rate) {
            (Target::Kind(_), Some(_), _) => return Err(InvalidLimit::SlotsOfKind),
            (_, None, None) => return Err(InvalidLimit::Nothing),
            (Target::Group(name), ..) if is_bad_class(name) => {
                return Err(InvalidLimit::Class { name: name.clone() });
            }
            _ => {}
        }
        if let Some(slots) = self.slots.filter(|slots| !(1..=SLOTS_MAX).contains(slots)) {
            return Err(InvalidLimit::Slots { slots });
        }
        self.rate.map_or(Ok(()), |rate| rate.check())
    }
}

/// Returns whether the name contains a star that is not the end of `prefix:*` with a prefix without `:`.
fn is_bad_class(name: &str) -> bool {
    name.contains('*') && class_of(name).as_deref() != Some(name)
}

/// A limit as shown to operators.
#[derive(Clone, Debug, Serialize)]
pub struct LimitView {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Its origin: an operator or a configuration.
    pub source: Source,
    /// The number of starts that it allows now; negative while it is in debt. `None` without a rate, and for a class,
    /// whose groups have separate buckets.
    pub tokens: Option<f64>,
    /// The number of jobs that hold a slot of the group; for a kind, the number of running jobs.
    pub holders: i64,
    /// The number of waiting jobs: of a group, for a slot or a token; of a kind, for a claim.
    pub waiting: i64,
}

/// An invalid limit.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidLimit {
    /// A name that is empty, too long or contains control characters.
    #[error("{why}")]
    Name {
        /// The reason.
        why: String,
    },
    /// A star that is not part of `prefix:*`.
    #[error("{name:?} is neither a group nor a class of groups; write a class as prefix:*")]
    Class {
        /// The name.
        name: String,
    },
    /// The limit has neither slots nor a rate.
    #[error("it has no effect; specify a rate or, for a group, a concurrency")]
    Nothing,
    /// A concurrency was given for a kind.
    #[error("a kind cannot have a concurrency; put its jobs in a group and limit the group")]
    SlotsOfKind,
    /// The number of slots is out of range.
    #[error("the concurrency is {slots}; it must be from 1 to {SLOTS_MAX}")]
    Slots {
        /// The given number.
        slots: u32,
    },
    /// The rate is not a number, or is out of range.
    #[error(
        "the rate is {per_second} per second; it must be from one in 30 days to 10000 per second (to stop a kind or group, pause its queue)"
    )]
    Rate {
        /// The given rate.
        per_second: f64,
    },
    /// A text that is not a rate.
    #[error("{text:?} is not a rate; write a rate as 10/s, 100/m, 2000/h, 5/d, 0.5/s or 7/15m")]
    RateText {
        /// The given text.
        text: String,
    },
    /// The burst is out of range.
    #[error("the burst is {burst}; it must be from 1 to 1000000")]
    Burst {
        /// The given burst.
        burst: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_by_the_part_before_the_first_colon() {
        assert_eq!(class_of("tenant:7:a").as_deref(), Some("tenant:*"));
        assert_eq!(class_of("tenant"), None);
    }

    #[test]
    fn limits_that_cannot_be_are_refused() {
        let rate = Rate::new(1.0, 1);
        assert_eq!(Limit::group("g").check(), Err(InvalidLimit::Nothing));
        assert_eq!(Limit::kind("k", rate).slots(2).check(), Err(InvalidLimit::SlotsOfKind));
        for slots in [0, 1001] {
            assert_eq!(Limit::group("g").slots(slots).check(), Err(InvalidLimit::Slots { slots }));
        }
        for name in ["*", "a*", "a:b:*", "a:*b", "*:*:*"] {
            let refused = Limit::group(name).slots(2).check();
            assert!(matches!(refused, Err(InvalidLimit::Class { .. })), "{name}: {refused:?}");
        }
        for good in [Limit::group("a:*").slots(2), Limit::group("a:b").rate(rate), Limit::kind("k*", rate)] {
            assert_eq!(good.check(), Ok(()));
        }
        assert!(matches!(Limit::group("").slots(2).check(), Err(InvalidLimit::Name { .. })));
    }
}
