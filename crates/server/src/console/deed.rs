//! Actions on jobs, with labels and descriptions for the console.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use super::flash::Flash;

/// Grace period for a running job to stop.
const GRACE: Duration = Duration::from_secs(10);

/// An action on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Retry,
    Rerun,
    Release,
    Snooze,
    Skip,
    Mark,
    Abort,
    Cancel,
}

impl Deed {
    pub(super) const ALL: [Self; 8] = [
        Self::Retry,
        Self::Rerun,
        Self::Release,
        Self::Snooze,
        Self::Skip,
        Self::Mark,
        Self::Abort,
        Self::Cancel,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Rerun => "rerun",
            Self::Release => "release",
            Self::Snooze => "snooze",
            Self::Skip => "skip",
            Self::Mark => "mark",
            Self::Abort => "abort",
            Self::Cancel => "cancel",
        }
    }

    /// The label of its button.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Retry => "Retry now",
            Self::Rerun => "Rerun",
            Self::Release => "Release",
            Self::Snooze => "Snooze",
            Self::Skip => "Skip",
            Self::Mark => "Mark as done",
            Self::Abort => "Abort",
            Self::Cancel => "Cancel",
        }
    }

    /// The effect.
    pub(super) const fn effect(self) -> &'static str {
        match self {
            Self::Retry => {
                "It runs as soon as a worker is free. An aborted job continues from its last checkpoint."
            }
            Self::Rerun => {
                "It starts from the beginning, with all its attempts and without its old checkpoint."
            }
            Self::Release => "It no longer waits for other jobs or for its group.",
            Self::Snooze => "It is not claimed before that time.",
            Self::Skip => "It ends as skipped without running.",
            Self::Mark => "It ends as succeeded without running.",
            Self::Abort => {
                "It stops and can be resumed. If it is running, it is asked to stop; after 10 s its worker loses it."
            }
            Self::Cancel => {
                "It ends permanently. If it is running, it is asked to stop; after 10 s its worker loses it."
            }
        }
    }

    pub(super) const fn is_dangerous(self) -> bool {
        matches!(self, Self::Skip | Self::Mark | Self::Abort | Self::Cancel)
    }

    /// Returns the verb of the action for a job in this state, if it is allowed.
    pub(super) fn verb(self, state: JobState) -> Option<Verb> {
        let verb = match self {
            Self::Retry => return Verb::that_retries(state),
            Self::Rerun => Verb::Rerun,
            Self::Release => Verb::Release,
            Self::Snooze => Verb::Snooze,
            Self::Skip => Verb::Skip,
            Self::Mark => Verb::Mark,
            Self::Abort => Verb::Abort,
            Self::Cancel => Verb::Cancel,
        };
        transition(Some(state), verb, Readiness::Ready).ok().map(|_| verb)
    }

    /// Applies the action to one job. `wait`: duration of a snooze.
    pub(super) async fn to(
        self,
        job: JobId,
        wait: Option<Duration>,
        reason: &str,
        store: &dyn Store,
    ) -> Result<Operated, Flash> {
        let view = store.job(job).await?.ok_or(StoreError::NoSuchJob(job))?;
        let state = view.row.state;
        let verb = self.verb(state).ok_or_else(|| {
            Flash::refused(format!("nothing was done: job {job} is {state} and does not allow {self}"))
        })?;
        Ok(store.operate(job, &self.operation(verb, wait, reason)?).await?)
    }

    /// Returns the operation with this verb. `wait`: duration of a snooze.
    pub(super) fn operation(
        self,
        verb: Verb,
        wait: Option<Duration>,
        reason: &str,
    ) -> Result<Operation, Flash> {
        let delay = match (self, wait) {
            (Self::Snooze, Some(wait)) => wait,
            (Self::Snooze, None) => {
                return Err(Flash::refused("nothing was done: a snooze needs a duration, such as 10m"));
            }
            _ => Duration::ZERO,
        };
        Ok(Operation::new(verb).grace(GRACE).delay(delay).note(reason))
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Deed {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|deed| deed.name() == name)
            .ok_or("expected retry, rerun, release, snooze, skip, mark, abort or cancel")
    }
}

/// Describes the result.
pub(super) fn told(operated: Operated) -> String {
    match operated {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "asked to stop".to_owned(),
    }
}

/// Parses a duration: `90s`, `10m`, `2h`, `1d`.
pub(super) fn wait(text: &str) -> Result<Duration, Flash> {
    let refuse = || {
        Flash::refused(format!(
            "nothing was done: {text:?} is not a duration; write it as 90s, 10m, 2h or 1d"
        ))
    };
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let unit_s = match unit.trim() {
        "s" | "" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(refuse()),
    };
    number
        .checked_mul(unit_s)
        .filter(|s| *s > 0 && *s < 10 * 366 * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_offers_what_its_transitions_allow() {
        let offered = |state| -> Vec<&str> {
            Deed::ALL.into_iter().filter(|deed| deed.verb(state).is_some()).map(Deed::name).collect()
        };
        assert_eq!(offered(JobState::Running), ["abort", "cancel"]);
        assert_eq!(offered(JobState::Failed), ["retry", "mark", "cancel"]);
        assert_eq!(offered(JobState::Succeeded), ["rerun"]);
        assert_eq!(offered(JobState::Aborted), ["retry", "cancel"]);
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        let seconds = |text| wait(text).map(|wait| wait.as_secs()).ok();
        assert_eq!(
            [seconds("90s"), seconds("10 m"), seconds("2h"), seconds("45")],
            [Some(90), Some(600), Some(7_200), Some(45)]
        );
        assert_eq!(
            [seconds(""), seconds("0s"), seconds("-1s"), seconds("99999999999999999999d"), seconds("soon")],
            [None; 5]
        );
    }
}
