//! Every (state, verb, readiness) agrees with the domain's transition function. Generic over the store.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::state::JobState;
use milepost_core::transition::{IllegalTransition, Readiness, Verb, transition};

use crate::fixture::{
    HOUR, Home, assert_told, claim, enqueue, failure, finish, job, retry, state, success, worker,
};

/// A job of its own kind, in a state, and its last run.
struct Placed {
    job: JobId,
    kind: String,
    run: Run,
}

/// Brings a new job into a state. With `Held` its group is taken when it would come back.
async fn place(
    store: &dyn Store,
    worker: WorkerId,
    kind: String,
    to: JobState,
    readiness: Readiness,
) -> Placed {
    let grouped = readiness == Readiness::Held || to == JobState::Blocked;
    let new = |kind: &str| {
        let group = format!("group of {kind}");
        if grouped {
            job(kind).group(group)
        } else {
            job(kind)
        }
    };
    let other = || {
        let mut other = new(&kind);
        other.kind = "other".to_owned();
        other
    };
    if to == JobState::Blocked {
        enqueue(store, other()).await;
    }
    let id = enqueue(store, new(&kind)).await;
    let mut run = Run {
        job: id,
        token: RunToken(0),
    };
    let operated = |verb| store.operate(id, Box::leak(Box::new(Operation::new(verb))));
    match to {
        JobState::Blocked | JobState::Pending => {}
        JobState::Aborted => drop(operated(Verb::Abort).await.unwrap()),
        JobState::Canceled => drop(operated(Verb::Cancel).await.unwrap()),
        JobState::Skipped => drop(operated(Verb::Skip).await.unwrap()),
        JobState::Running | JobState::RetryWait | JobState::Failed | JobState::Succeeded => {
            run = claim(store, worker, &[&kind], 1).await[0].run;
            let end = match to {
                JobState::RetryWait => Some(retry(Duration::ZERO)),
                JobState::Failed => Some(End::Fail { failure: failure() }),
                JobState::Succeeded => Some(success()),
                _ => None,
            };
            if let Some(end) = end {
                assert_eq!(finish(store, worker, run, end).await, Finished::Accepted);
            }
        }
    }
    if grouped && !to.holds_group_slot() && to != JobState::Blocked {
        enqueue(store, other()).await;
    }
    assert_eq!(state(store, id).await, to);
    Placed { job: id, kind, run }
}

/// What the store did: the next state, or nothing.
async fn apply(store: &dyn Store, worker: WorkerId, placed: &Placed, verb: Verb) -> Option<JobState> {
    let end = match verb {
        Verb::Create => return None,
        Verb::Claim => {
            let claimed = claim(store, worker, &[&placed.kind], 1).await;
            return (!claimed.is_empty()).then_some(JobState::Running);
        }
        Verb::Succeed => success(),
        Verb::Retry => retry(HOUR),
        Verb::Fail => End::Fail { failure: failure() },
        Verb::Yield => End::Yield {
            delay: HOUR,
            note: "later".to_owned(),
        },
        _ => return operate(store, placed, verb).await,
    };
    let refused_to_operators = store.operate(placed.job, &Operation::new(verb)).await;
    assert!(matches!(refused_to_operators, Err(StoreError::Illegal { .. })));
    match finish(store, worker, placed.run, end).await {
        Finished::Accepted => Some(state(store, placed.job).await),
        Finished::Repeated | Finished::Fenced => None,
    }
}

async fn operate(store: &dyn Store, placed: &Placed, verb: Verb) -> Option<JobState> {
    let before = state(store, placed.job).await;
    match store.operate(placed.job, &Operation::new(verb)).await {
        Ok(Operated::Done(to)) => Some(to),
        Ok(Operated::StopRequested) => panic!("{before} {verb}: asked for without a grace time"),
        Err(StoreError::Illegal { job, illegal }) => {
            assert_eq!(job, placed.job);
            assert_eq!(
                illegal,
                IllegalTransition {
                    from: Some(before),
                    verb
                }
            );
            None
        }
        Err(error) => panic!("{before} {verb}: {}", error.chain()),
    }
}

/// The check of all pairs.
pub async fn all_pairs_agree_with_the_transition_function(store: &dyn Store) {
    let worker = worker(store, &["any"], HOUR).await;
    for readiness in [Readiness::Ready, Readiness::Held] {
        for &from in JobState::ALL {
            for &verb in Verb::ALL {
                let pair = format!("{from} {verb} {readiness:?}");
                let placed = place(store, worker, pair.clone(), from, readiness).await;
                let entries = store.history(placed.job).await.unwrap().len();
                let did = apply(store, worker, &placed, verb).await;
                // A group has one holder, whatever an operator wants: a release waits for the slot.
                let expected = match (from, verb) {
                    (JobState::Blocked, Verb::Release) => None,
                    _ => transition(Some(from), verb, readiness).ok(),
                };
                assert_eq!(did, expected, "{pair}");
                let now = state(store, placed.job).await;
                assert_eq!(now, expected.unwrap_or(from), "{pair}");
                let recorded = store.history(placed.job).await.unwrap().len() - entries;
                assert_eq!(recorded, usize::from(expected.is_some()), "{pair}: history rows");
                assert_told(store, placed.job).await;
            }
        }
    }
}

#[tokio::test]
async fn every_pair_of_state_and_verb_agrees_with_the_transition_function() {
    let home = Home::new().await;
    all_pairs_agree_with_the_transition_function(&home.store).await;
}
