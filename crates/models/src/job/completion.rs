//! Completion of a job after the last fault, for the rule that every job can end.

use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb};

use super::rules::Defect;
use super::store::{Lease, Store};

/// More steps than any job needs: release, expiry, rescue, claim, end, for each of its attempts.
const STEPS_MAX: usize = 16;

/// Returns whether workers and rescuers alone bring the job to its end, to a dead letter or to an abort, and whether one action of an operator
/// brings it to its end from there.
pub(super) fn can_end(store: &Store, defect: Option<Defect>) -> bool {
    let mut store = store.clone();
    settle(&mut store, defect);
    let verb = match store.state {
        JobState::Failed => Verb::RetryNow,
        JobState::Aborted => Verb::Resume,
        state => return state.is_ended(),
    };
    store.operate(verb, false, Readiness::Held, defect);
    settle(&mut store, defect);
    store.state.is_ended()
}

/// Runs the job until nothing but an operator can change it.
fn settle(store: &mut Store, defect: Option<Defect>) {
    for _ in 0..STEPS_MAX {
        match store.state {
            JobState::Blocked => store.release(),
            JobState::Pending | JobState::RetryWait => {
                let worker = store.register();
                if let Some(run) = store.claim(worker, defect) {
                    store.finish(run.token, Verb::Succeed, defect);
                }
            }
            JobState::Running => rescue(store, defect),
            _ => return,
        }
    }
}

/// Waits for the lease of the worker that has the job, and takes the job back.
fn rescue(store: &mut Store, defect: Option<Defect>) {
    let Some(worker) = store.worker else { return };
    let read = match store.leases[worker] {
        Lease::Lost if defect == Some(Defect::RescueForgetsMarkedWorkers) => None,
        Lease::Lost => store.read_lost(worker),
        Lease::Valid | Lease::Expired => {
            store.leases[worker] = Lease::Expired;
            store.mark_lost(worker, defect)
        }
    };
    if let Some(read) = read {
        store.take_back(read, defect);
    }
}
