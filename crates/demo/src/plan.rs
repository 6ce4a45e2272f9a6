//! The plan of a demo: the number of places, and which of their jobs fail.

use std::time::Duration;

use milepost::{JobError, RetryPolicy};

use super::places::Place;

/// The approximate number of jobs that become dead letters.
const DEAD_LETTERS: u32 = 12;
/// One job in this many fails its first attempt.
const FLAKY_EVERY: u32 = 100;

/// The delay after a failure: short, because users watch the demo.
pub(super) const BACKOFF: RetryPolicy =
    RetryPolicy { base: Duration::from_millis(200), cap: Duration::from_secs(2), jitter: 0.1 };

/// The plan of one demo. It depends only on the number of places, so that every process can compute it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) places: u32,
}

impl Plan {
    /// Returns whether the job of this place fails permanently.
    pub(super) const fn is_dead_letter(self, place: u32) -> bool {
        place.is_multiple_of(self.dead_letter_every())
    }

    /// Returns whether the job of this place fails its first attempt and succeeds later.
    pub(super) const fn is_flaky(self, place: u32) -> bool {
        place % FLAKY_EVERY == FLAKY_EVERY - 1 && !self.is_dead_letter(place)
    }

    /// Returns the places that get a notification.
    pub(super) fn notified(self) -> impl Iterator<Item = u32> {
        (1..=self.places).filter(move |&place| !self.is_dead_letter(place))
    }

    /// Returns the places whose jobs fail permanently.
    pub(super) fn dead_letters(self) -> impl Iterator<Item = u32> {
        (1..=self.places).filter(move |&place| self.is_dead_letter(place))
    }

    /// Returns the places whose jobs fail once.
    pub(super) fn flaky(self) -> impl Iterator<Item = u32> {
        (1..=self.places).filter(move |&place| self.is_flaky(place))
    }

    /// Returns the failure of this attempt, if it is to fail.
    pub(super) fn trouble(self, place: &Place, attempt: u32) -> Result<(), JobError> {
        let Place { id, name, country, .. } = place;
        if self.is_dead_letter(*id) {
            let every = self.dead_letter_every();
            let message =
                format!("{name} ({country}) has no address; in this demo every {every}th place lacks one");
            return Err(JobError::fatal("no_address", message));
        }
        if self.is_flaky(*id) && attempt == 1 {
            let message =
                format!("no answer from {name} ({country}); in this demo 1 % of places answer late");
            return Err(JobError::retryable("no_answer", message));
        }
        Ok(())
    }

    const fn dead_letter_every(self) -> u32 {
        let every = self.places / DEAD_LETTERS;
        if every == 0 { 1 } else { every }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dozen_places_are_dead_letters_and_a_hundredth_is_flaky() {
        for places in [1000, 3000, 171_075] {
            let plan = Plan { places };
            let dead_letters = plan.dead_letters().count();
            assert!((12..=13).contains(&dead_letters), "{dead_letters} of {places}");
            assert_eq!(plan.notified().count() + dead_letters, places as usize);
            let flaky = plan.flaky().count() as u32;
            assert!(flaky.abs_diff(places / FLAKY_EVERY) <= 2, "{flaky} of {places}");
        }
    }
}
