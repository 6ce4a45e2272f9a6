//! Stale run tokens change nothing and are told so. Tokens rise.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::{Run, RunToken};
use milepost_core::port::{AdminStore, Operated, Operation, Store, WorkerStore};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, Report};

use crate::fixture::{
    HOUR, Home, assert_told, claim, enqueue, failure, finish, job, retry, state, success, worker,
};

fn report(run: Run) -> Report {
    Report {
        run,
        progress: Some(Progress {
            done: 1,
            total: None,
            message: None,
        }),
        checkpoint: Some("7".to_owned()),
    }
}

/// A job whose first run was given back and whose second is under way.
async fn second_run(store: &dyn Store) -> (Run, Run, milepost_core::ident::WorkerId) {
    enqueue(store, job("a")).await;
    let worker = worker(store, &["a"], HOUR).await;
    let first = claim(store, worker, &["a"], 1).await[0].run;
    finish(store, worker, first, retry(Duration::ZERO)).await;
    let second = claim(store, worker, &["a"], 1).await[0].run;
    assert_eq!(second.token, RunToken(first.token.0 + 1));
    (first, second, worker)
}

#[tokio::test]
async fn no_write_with_a_stale_token_is_accepted() {
    let home = Home::new().await;
    let store = &home.store;
    let (stale, current, worker) = second_run(store).await;
    let ends = [
        success(),
        End::Fail { failure: failure() },
        End::Yield {
            delay: HOUR,
            note: String::new(),
        },
        End::Cancel,
        End::Abort,
    ];
    for end in ends {
        assert_eq!(finish(store, worker, stale, end).await, Finished::Fenced);
    }
    assert_eq!(store.report_many(&[report(stale)]).await.unwrap(), [false]);
    let completed = store
        .transaction(move |tx| milepost_sqlite::complete(tx, stale, None))
        .await;
    assert!(matches!(completed, Err(StoreError::Fenced(run)) if run == stale));
    assert_eq!(store.checkpoint(stale.job).await.unwrap(), None);
    assert_eq!(store.history(stale.job).await.unwrap().len(), 4);

    assert_eq!(store.report_many(&[report(current)]).await.unwrap(), [true]);
    assert_eq!(store.checkpoint(stale.job).await.unwrap().as_deref(), Some("7"));
    assert_eq!(
        finish(store, worker, current, success()).await,
        Finished::Accepted
    );
    assert_eq!(store.report_many(&[report(current)]).await.unwrap(), [false]);
    assert_told(store, stale.job).await;
}

#[tokio::test]
async fn an_end_sent_again_is_repeated_only_when_it_is_that_very_end() {
    let home = Home::new().await;
    let store = &home.store;
    let (first, second, worker) = second_run(store).await;
    assert_eq!(
        finish(store, worker, first, retry(Duration::ZERO)).await,
        Finished::Repeated
    );
    assert_eq!(finish(store, worker, first, success()).await, Finished::Fenced);
    assert_eq!(finish(store, worker, second, success()).await, Finished::Accepted);
    assert_eq!(finish(store, worker, second, success()).await, Finished::Repeated);
    assert_eq!(finish(store, worker, second, End::Cancel).await, Finished::Fenced);
}

#[tokio::test]
async fn a_rerun_goes_on_from_its_last_token_with_all_its_attempts() {
    let home = Home::new().await;
    let store = &home.store;
    let (_, second, worker) = second_run(store).await;
    finish(store, worker, second, success()).await;
    let rerun = store
        .operate(second.job, &Operation::new(Verb::Rerun))
        .await
        .unwrap();
    assert_eq!(rerun, Operated::Done(JobState::Pending));
    let third = &claim(store, worker, &["a"], 1).await[0];
    assert_eq!(third.run.token, RunToken(3));
    assert_eq!((third.attempt, third.max_attempts), (3, 2 + 25));
    assert_told(store, second.job).await;
}

#[tokio::test]
async fn a_yield_does_not_spend_the_attempt() {
    let home = Home::new().await;
    let store = &home.store;
    enqueue(store, job("a")).await;
    let worker = worker(store, &["a"], HOUR).await;
    for token in 1..4 {
        let claimed = &claim(store, worker, &["a"], 1).await[0];
        assert_eq!((claimed.attempt, claimed.run.token), (1, RunToken(token)));
        let end = End::Yield {
            delay: Duration::ZERO,
            note: "again".to_owned(),
        };
        assert_eq!(finish(store, worker, claimed.run, end).await, Finished::Accepted);
    }
}

#[tokio::test]
async fn a_running_job_is_asked_to_stop_and_fenced_off_after_its_grace_time() {
    let home = Home::new().await;
    let store = &home.store;
    let (_, run, worker) = second_run(store).await;
    let cancel = Operation::new(Verb::Cancel)
        .grace(Duration::from_millis(30))
        .note("enough");
    let asked = store.operate(run.job, &cancel).await.unwrap();
    assert_eq!(asked, Operated::StopRequested);
    assert!(store.job(run.job).await.unwrap().unwrap().stop_requested);
    assert_eq!(
        store.heartbeat(worker).await.unwrap().stops,
        [(run, Verb::Cancel)]
    );

    let maintenance: &dyn Store = store;
    assert_eq!(maintenance.stop_overdue(10).await.unwrap(), []);
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert_eq!(maintenance.stop_overdue(10).await.unwrap(), [run.job]);
    assert_eq!(state(store, run.job).await, JobState::Canceled);
    assert_eq!(finish(store, worker, run, success()).await, Finished::Fenced);
    let history = store.history(run.job).await.unwrap();
    assert_eq!(history.last().unwrap().note.as_deref(), Some("enough"));
    assert_told(store, run.job).await;
}

#[tokio::test]
async fn a_failed_job_gets_its_attempts_again() {
    let home = Home::new().await;
    let store = &home.store;
    let id = enqueue(store, job("a").max_attempts(1)).await;
    let worker = worker(store, &["a"], HOUR).await;
    let run = claim(store, worker, &["a"], 1).await[0].run;
    finish(store, worker, run, End::Fail { failure: failure() }).await;
    store.operate(id, &Operation::new(Verb::RetryNow)).await.unwrap();
    let again = &claim(store, worker, &["a"], 1).await[0];
    assert_eq!((again.attempt, again.max_attempts), (2, 2));
}
