//! The number of jobs that an action on many jobs would change, counted with the same search as the action itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use milepost_core::actions::job::JobAction;
use milepost_core::actions::select::JOBS_MAX;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::{JobFilter, SCAN_MAX};
use milepost_core::state::JobState;

use super::format::{count, several};
use crate::problem::Problem;

/// Time limit of the count.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of displayed jobs.
const SHOWN: usize = 20;

/// How the count ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// All jobs were counted.
    #[default]
    Last,
    /// The time limit was reached.
    Late,
    /// There are more jobs than one action may change.
    TooMany,
}

#[derive(Default)]
pub(super) struct AffectedJobs {
    /// The newest jobs that the action applies to.
    pub(super) newest: Vec<JobRow>,
    /// The number of jobs that the action applies to.
    pub(super) total: usize,
    /// The number of jobs that the action does not apply to, by state.
    cannot: BTreeMap<JobState, usize>,
    end: End,
}

impl AffectedJobs {
    /// Counts these jobs.
    pub(super) fn of(action: JobAction, jobs: Vec<JobRow>) -> Self {
        let mut affected = Self::default();
        affected.take_in(action, jobs);
        affected
    }

    /// Counts all matching jobs.
    pub(super) async fn of_all(
        action: JobAction,
        filter: JobFilter,
        store: &dyn Store,
    ) -> Result<Self, Problem> {
        let begun = Instant::now();
        let (mut affected, mut filter) = (Self::default(), JobFilter { limit: SCAN_MAX, ..filter });
        loop {
            let page = store.search_jobs(&filter).await?;
            affected.take_in(action, page.rows);
            if affected.total + affected.cannot.values().sum::<usize>() > JOBS_MAX {
                affected.end = End::TooMany;
                return Ok(affected);
            }
            let Some(next) = page.next else { return Ok(affected) };
            if begun.elapsed() > PATIENCE {
                affected.end = End::Late;
                return Ok(affected);
            }
            filter.before = Some(next);
        }
    }

    fn take_in(&mut self, action: JobAction, jobs: Vec<JobRow>) {
        for job in jobs {
            if action.verb(job.state).is_none() {
                *self.cannot.entry(job.state).or_default() += 1;
                continue;
            }
            self.total += 1;
            if self.newest.len() < SHOWN {
                self.newest.push(job);
            }
        }
    }

    /// Describes the number of jobs.
    pub(super) fn number(&self) -> String {
        let jobs = several(self.total as u64, "job", "jobs");
        match self.end {
            End::Last => jobs,
            End::Late => format!("at least {jobs}"),
            End::TooMany => "too many jobs".to_owned(),
        }
    }

    /// Returns the number of jobs, if it is exact.
    pub(super) fn exactly(&self) -> Option<usize> {
        (self.end == End::Last).then_some(self.total)
    }

    /// Returns whether the action applies to any job.
    pub(super) fn is_possible(&self) -> bool {
        match self.end {
            End::Last => self.total > 0,
            End::Late => true,
            End::TooMany => false,
        }
    }

    /// Returns the number of jobs that the action does not apply to, by state.
    pub(super) fn cannot(&self) -> Vec<(&'static str, usize)> {
        self.cannot.iter().map(|(state, number)| (state.as_str(), *number)).collect()
    }

    /// Returns a note if the number is not exact.
    pub(super) fn notice(&self) -> Option<String> {
        match self.end {
            End::Last => None,
            End::Late => Some(format!(
                "At least {}: counting took too long. The action applies to all matching jobs, at most {}; jobs that are created \
                 after this page are not changed. Narrow the filter by a time (since) to get the exact number.",
                several(self.total as u64, "job", "jobs"),
                count(JOBS_MAX)
            )),
            End::TooMany => Some(format!("The action is not possible: {}.", too_many())),
        }
    }
}

/// The message for more jobs than one action may change.
pub(super) fn too_many() -> String {
    let most = count(JOBS_MAX);
    format!(
        "more than {most} jobs match, and one action changes at most {most}; narrow the filter by a time (since)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_known_is_not_told_as_one_that_is() {
        let affected = |end| AffectedJobs { total: 1_200, end, ..AffectedJobs::default() };
        let (exact, late, too_many) = (affected(End::Last), affected(End::Late), affected(End::TooMany));
        assert_eq!((exact.number(), exact.exactly()), ("1,200 jobs".to_owned(), Some(1_200)));
        assert!(exact.notice().is_none() && exact.is_possible() && !AffectedJobs::default().is_possible());
        assert_eq!((late.number(), late.exactly()), ("at least 1,200 jobs".to_owned(), None));
        assert!(late.notice().unwrap().starts_with("At least 1,200 jobs: counting took too long."));
        assert!(late.is_possible() && !too_many.is_possible());
        let notice = too_many.notice().unwrap();
        assert!(notice.contains("more than 100,000 jobs match") && notice.contains("(since)"), "{notice}");
    }
}
