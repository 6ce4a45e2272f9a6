//! Checks of the store against the transition function for every pair of state and verb.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::{JobId, Run};
use milepost_core::port::{JobEdit, Operated, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use milepost_testkit::scene::{Scene, failure, retry};

/// The result of a verb in the store: the new state, or `None` if it was rejected.
type Outcome = Option<JobState>;

pub async fn every_pair_agrees_with_the_transition_function(scene: Scene) {
    for &state in JobState::ALL {
        for &verb in Verb::ALL.iter().filter(|&&verb| verb != Verb::Create) {
            let (job, run) = scene.job_in(state).await;
            let outcome = apply(&scene, state, job, run, verb).await;
            let expected = transition(Some(state), verb, Readiness::Ready).ok();
            assert_eq!(outcome, expected, "{verb} on a job that is {state}");
            let now = scene.state(job).await;
            assert_eq!(now, expected.unwrap_or(state), "{verb} on a job that was {state}");
            scene.assert_history_folds(job).await;
            clear(&scene, job, run).await;
        }
    }
}

async fn apply(scene: &Scene, state: JobState, job: JobId, run: Run, verb: Verb) -> Outcome {
    let ends = match verb {
        Verb::Succeed => Some(End::Succeed { result: None }),
        Verb::Retry => Some(retry(Duration::ZERO)),
        Verb::Fail => Some(End::Fail { failure: failure() }),
        Verb::Yield => Some(End::Yield { delay: Duration::ZERO, note: String::new() }),
        _ => None,
    };
    if let Some(end) = ends {
        let token = scene.view(job).await.row.token;
        let finished = scene.finish_run(Run { job, token }, false, end).await;
        return match finished {
            Finished::Accepted => Some(scene.state(job).await),
            // A repeated end is not a change.
            Finished::Repeated | Finished::Fenced | Finished::Held => None,
        };
    }
    match verb {
        Verb::Claim => {
            let claimed = scene.claim(10).await;
            claimed.iter().any(|claimed| claimed.run.job == job).then_some(JobState::Running)
        }
        // A job that waits for its group is released by the end of the previous job.
        Verb::Release if state == JobState::Blocked => {
            scene.finish_run(run, true, End::Succeed { result: None }).await;
            Some(scene.state(job).await)
        }
        Verb::Edit => {
            let edit = JobEdit { max_attempts: Some(20), ..JobEdit::default() };
            match scene.store.edit_job(job, &edit).await {
                Ok(state) => Some(state),
                Err(StoreError::Illegal { illegal, .. }) => {
                    assert_eq!((illegal.from, illegal.verb), (Some(state), verb));
                    None
                }
                Err(error) => panic!("{verb} on a job that is {state}: {error:?}"),
            }
        }
        verb => match scene.operate(job, Operation::new(verb)).await {
            Ok(Operated::Done(next)) => Some(next),
            Ok(Operated::StopRequested) => {
                panic!("without a grace period the operation must be done immediately")
            }
            Err(StoreError::Illegal { illegal, .. }) => {
                assert_eq!((illegal.from, illegal.verb), (Some(state), verb));
                None
            }
            Err(error) => panic!("{verb} on a job that is {state}: {error:?}"),
        },
    }
}

/// Cancels the jobs of one pair, so that they do not affect the next pair.
async fn clear(scene: &Scene, job: JobId, run: Run) {
    for job in [job, run.job] {
        if !scene.state(job).await.is_ended() {
            scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        }
    }
}
