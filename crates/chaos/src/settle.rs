//! The end of a run: everything ends, and nothing is left that the doctor finds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::doctor::Check;
use milepost_core::port::{Operation, Store, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::load::setup::{BULK, SCHEDULE};
use crate::record::{Outcome, What};
use crate::witness::Witness;

/// The interval at which the end of everything is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How many times longer everything may take, if there is progress.
const LONGER_MAX: u32 = 8;

/// Waits until every job has ended and every event was delivered, as long as there is progress at least once in `stalled_max`: a slow machine takes
/// its time. Pauses the schedule, and resumes bulk runs. Returns how long that took; none if it did not happen.
pub async fn settle(store: &dyn Store, witness: &Witness, stalled_max: Duration) -> Option<Duration> {
    let began = Instant::now();
    let (mut fewest, mut progress_at) = (i64::MAX, began);
    while progress_at.elapsed() < stalled_max && began.elapsed() < stalled_max * LONGER_MAX {
        match open_work(store, witness).await {
            Ok(0) => return Some(began.elapsed()),
            Ok(open) if open < fewest => (fewest, progress_at) = (open, Instant::now()),
            Ok(_) | Err(_) => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    None
}

/// Returns the number of jobs, ends of tasks and events that are not done.
async fn open_work(store: &dyn Store, witness: &Witness) -> StoreResult<i64> {
    store.pause_schedule(SCHEDULE).await?;
    resume_bulks(store, witness).await?;
    let open = |state: JobState| state.is_waiting() || matches!(state, JobState::Running | JobState::Blocked);
    let counts = store.count_by_state().await?;
    let jobs: i64 = counts.iter().filter(|(state, _)| open(*state)).map(|(_, count)| count).sum();
    let of_batches = store.advance_batches().await?;
    let subscriptions = store.subscriptions().await?;
    let events: i64 = subscriptions.iter().map(|subscription| subscription.backlog).sum();
    Ok(jobs + i64::try_from(of_batches).unwrap_or(i64::MAX) + events)
}

/// Resumes runs whose client was killed between abort and resume.
async fn resume_bulks(store: &dyn Store, witness: &Witness) -> StoreResult<()> {
    let (kind, state) = (Some(BULK.to_owned()), Some(JobState::Aborted));
    for job in store.jobs(&JobFilter { kind, state, ..JobFilter::default() }).await? {
        let what = What::ResumeBulk { run: job.id.to_string() };
        let begun = witness.begins(&what);
        store.operate(job.id, &Operation::new(Verb::Resume)).await?;
        witness.ended(&begun, Outcome::Ok, what);
    }
    Ok(())
}

/// Returns whether `milepost doctor` reports that the server was promoted or restored.
pub async fn is_promotion_reported(store: &Arc<dyn Store>) -> bool {
    milepost_testkit::examine::examined(store, Check::Promoted).await.is_some()
}

/// Returns what `milepost doctor` finds. A failover is a fault of the experiment, and promotions are reported as they should be.
pub async fn examined(store: &Arc<dyn Store>) -> Vec<String> {
    let findings = milepost_testkit::examine::examine(store).await;
    let findings = findings.iter().filter(|finding| finding.check != Check::Promoted);
    findings.map(|finding| format!("{finding:?}")).collect()
}
