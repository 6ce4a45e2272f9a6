//! Runs that open transactions of other programs hold. Their ends must not delay those of other runs.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use milepost_core::finish::{Finish, Finished};
use milepost_core::ident::JobId;

/// The maximum number of jobs that are remembered. If there are more, all are forgotten, and found out again.
const REMEMBERED_MAX: usize = 100_000;

/// The jobs whose last end was held. Ends of these do not wait again.
#[derive(Debug, Default)]
pub(crate) struct HeldRuns(Mutex<HashSet<JobId>>);

impl HeldRuns {
    pub(crate) fn has_any_of(&self, finishes: &[Finish]) -> bool {
        let held = self.lock();
        !held.is_empty() && finishes.iter().any(|finish| held.contains(&finish.run.job))
    }

    /// Notes which ends were held and which are over.
    pub(crate) fn remember(&self, finishes: &[Finish], told: &[Finished]) {
        let mut held = self.lock();
        for (finish, told) in finishes.iter().zip(told) {
            if *told == Finished::Held {
                if held.len() >= REMEMBERED_MAX {
                    held.clear();
                }
                held.insert(finish.run.job);
            } else {
                held.remove(&finish.run.job);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
