//! How fast and how many at once: limits of kinds and of groups.
//!
//! A **kind** may have a rate. A **group** may have slots (how many of its jobs may be under way at once),
//! a rate, or both; a *class* of groups, `prefix:*`, stands for each of those whose name goes on after the
//! prefix, unless it has a limit of its own name.

mod bucket;
mod rate;

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::job::{NAME_BYTES_MAX, check_key};

pub use crate::schedule::Source;
pub use rate::Rate;

/// Jobs of a group that may be under way at once when nobody says otherwise.
pub const SLOTS_DEFAULT: u32 = 1;
/// The most slots a group can have.
pub const SLOTS_MAX: u32 = 1000;

/// What a limit is about.
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
    /// The name of the kind, the group or the class.
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

/// The class a group belongs to: `prefix:*`, by the part of its name before the first `:`.
#[must_use]
pub fn class_of(group: &str) -> Option<String> {
    group.split_once(':').map(|(prefix, _)| format!("{prefix}:*"))
}

/// How fast, or how many at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Of what.
    #[serde(flatten)]
    pub target: Target,
    /// How many jobs of the group may be under way at once; `None` for a kind, and for a group that only
    /// has a rate.
    pub slots: Option<u32>,
    /// How many starts there may be in a time.
    #[serde(flatten)]
    pub rate: Option<Rate>,
}

impl Limit {
    /// At most this many starts of jobs of a kind.
    #[must_use]
    pub fn kind(kind: impl Into<String>, rate: Rate) -> Self {
        Self { target: Target::Kind(kind.into()), slots: None, rate: Some(rate) }
    }

    /// A limit of a group, or of each group of a class `prefix:*`, that limits nothing yet.
    #[must_use]
    pub fn group(group: impl Into<String>) -> Self {
        Self { target: Target::Group(group.into()), slots: None, rate: None }
    }

    /// With at most this many jobs under way at once.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// With at most this many starts.
    #[must_use]
    pub const fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Checks all there is to check.
    ///
    /// # Errors
    /// [`InvalidLimit`] says what is wrong.
    pub fn check(&self) -> Result<(), InvalidLimit> {
        check_key("name", self.target.name(), NAME_BYTES_MAX)
            .map_err(|invalid| InvalidLimit::Name { why: invalid.to_string() })?;
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

/// A star anywhere but at the end of `prefix:*`, where the prefix has no `:`.
fn is_bad_class(name: &str) -> bool {
    name.contains('*') && class_of(name).as_deref() != Some(name)
}

/// A limit as operators see it.
#[derive(Clone, Debug, Serialize)]
pub struct LimitView {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Who made it.
    pub source: Source,
    /// How many starts it would allow now; below nothing while it is in debt. `None` without a rate, and for
    /// a class, each of whose groups counts for itself.
    pub tokens: Option<f64>,
    /// How many jobs hold a slot of the group, or run, for a kind.
    pub holders: i64,
    /// How many jobs wait: of a group, for a slot or a token; of a kind, to be claimed.
    pub waiting: i64,
}

/// A limit that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidLimit {
    /// A name that is empty, too long or has control characters.
    #[error("{why}")]
    Name {
        /// What is wrong with it.
        why: String,
    },
    /// A star that stands elsewhere than in `prefix:*`.
    #[error("{name:?} is neither a group nor a class of groups; a class is written prefix:*")]
    Class {
        /// The name.
        name: String,
    },
    /// Neither slots nor a rate.
    #[error("it limits nothing; give a rate, or, for a group, a concurrency")]
    Nothing,
    /// A concurrency of a kind.
    #[error("a kind has no concurrency of its own; put its jobs in a group and limit that")]
    SlotsOfKind,
    /// Too few or too many slots.
    #[error("the concurrency is {slots}; it must be from 1 to {SLOTS_MAX}")]
    Slots {
        /// What was asked for.
        slots: u32,
    },
    /// A rate that is no number, or too low or too high.
    #[error(
        "the rate is {per_second} a second; it must be from one in 30 days to 10000 a second (to stop a kind or group, pause its queue)"
    )]
    Rate {
        /// What was asked for.
        per_second: f64,
    },
    /// A rate that is not written as one.
    #[error("{text:?} is not a rate; a rate is written 10/s, 100/m, 2000/h, 5/d, 0.5/s or 7/15m")]
    RateText {
        /// What was written.
        text: String,
    },
    /// Too small or too large a burst.
    #[error("the burst is {burst}; it must be from 1 to 1000000")]
    Burst {
        /// What was asked for.
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
