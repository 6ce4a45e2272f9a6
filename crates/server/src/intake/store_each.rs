//! Storing many jobs, each independently of the others.

use std::slice;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::Store;
use tokio::time::{Instant, sleep};

use super::{HELD_MAX, held};
use crate::problem::{Code, Problem};

/// The pause before held jobs are tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// By how much a part with an invalid or held job is too large. A held one costs its wait for the lock, so few such parts are to be tried.
const SHRINK: usize = 8;

/// What happens if an open transaction holds what some of the jobs need.
#[derive(Clone, Copy)]
pub(super) enum WhenHeld {
    /// None of the jobs that share a transaction with them has a result.
    LeaveAll,
    /// Only they have none: until this time, jobs are stored in smaller and smaller parts.
    Divide { until: Instant },
}

/// Stores the jobs that the store accepts and returns the reason for each refused one; the results are in the order of `jobs`. Held jobs are tried
/// again for as long as other requests are, then refused.
pub(crate) async fn store_each_in_time(
    store: &dyn Store,
    jobs: &[NewJob],
) -> Result<Vec<Result<Enqueued, Problem>>, StoreError> {
    let until = Instant::now() + HELD_MAX;
    let mut stored = store_each(store, jobs, WhenHeld::Divide { until }).await?;
    while stored.iter().any(Option::is_none) && Instant::now() + PAUSE < until {
        sleep(PAUSE).await;
        for (job, stored) in jobs.iter().zip(&mut stored).filter(|(_, stored)| stored.is_none()) {
            if Instant::now() >= until {
                break;
            }
            // An error is that of this job: others are stored already.
            let again = store_each(store, slice::from_ref(job), WhenHeld::LeaveAll).await;
            *stored =
                again.map_or_else(|error| Some(Err(Problem::from(error))), |mut one| one.pop().flatten());
        }
    }
    Ok(stored.into_iter().map(|stored| stored.unwrap_or_else(|| Err(held()))).collect())
}

/// Stores the jobs that the store accepts and returns the reason for each refused one; the results are in the order of `jobs`, `None` for those that
/// are held. Uses one transaction if all are accepted. Otherwise smaller parts are tried, since a database does not always report which job is invalid
/// or held, and larger ones again after each that is accepted.
pub(super) async fn store_each(
    store: &dyn Store,
    jobs: &[NewJob],
    when_held: WhenHeld,
) -> Result<Vec<Option<Result<Enqueued, Problem>>>, StoreError> {
    let divides = || matches!(when_held, WhenHeld::Divide { until } if Instant::now() < until);
    let mut answers = Vec::with_capacity(jobs.len());
    let mut part_max = jobs.len();
    while answers.len() < jobs.len() {
        let left = &jobs[answers.len()..];
        let part = &left[..part_max.min(left.len())];
        match store.enqueue_unless_held(part).await {
            Ok(Some(stored)) => {
                part_max = part.len() * 2;
                answers.extend(stored.into_iter().map(|stored| Some(Ok(stored))));
            }
            Ok(None) if part.len() > 1 && divides() => part_max = part.len().div_ceil(SHRINK),
            Ok(None) => answers.resize_with(answers.len() + part.len(), || None),
            Err(StoreError::Invalid { .. }) if part.len() > 1 => part_max = part.len().div_ceil(SHRINK),
            Err(StoreError::Invalid { invalid, .. }) => {
                answers.push(Some(Err(Problem::new(Code::InvalidJob, invalid.to_string()))));
            }
            Err(error) if answers.is_empty() => return Err(error),
            // Earlier jobs are committed, so each caller gets the result of its own job. A failing store gets no further
            // requests.
            Err(error) => {
                let problem = Problem::from(error);
                answers.resize_with(jobs.len(), || Some(Err(problem.clone())));
            }
        }
    }
    Ok(answers)
}
