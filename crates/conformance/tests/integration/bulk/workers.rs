//! Workers that are killed, paused and shut down during a run.

use std::time::Duration;

use milepost::bulk::{Definition, Load};
use milepost::{JobId, JobState, Operation, StoreError, Verb};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::wait;

use crate::bulk::members::Members;

fn worker(members: &Members) -> Process {
    let settings = Settings::default().bulk_rows(1_500);
    Process::start(env!("CARGO_BIN_EXE_conformance-worker"), &members.home.address(), settings)
}

/// Freezes a worker, but not during a write: on a SQLite file that would block all other writers.
pub(crate) async fn pause(members: &Members, worker: &Process) {
    loop {
        worker.pause().await;
        if members.home.is_writable().await {
            return;
        }
        worker.revive();
    }
}

/// Waits until the run has progressed or has ended. Returns whether it has ended. A run that was often interrupted pauses for increasing times; the
/// test avoids these waits.
pub(crate) async fn has_moved(members: &Members, job: JobId) -> bool {
    let chunks = members.view(job).await.counts.chunks;
    wait::until("the run processes a chunk or ends", || async {
        let view = members.view(job).await;
        if view.state == JobState::RetryWait {
            drop(members.scene.operate(job, Operation::new(Verb::RetryNow)).await);
        }
        view.state.is_ended() || view.counts.chunks > chunks + 2
    })
    .await;
    members.view(job).await.state.is_ended()
}

pub(crate) async fn a_worker_that_shuts_down_hands_its_run_back_after_the_current_chunk(members: Members) {
    members.add(0..400).await;
    let load = Load { rows_per_s: Some(50.0), duty: 1.0 };
    let slow = Definition { load, ..members.notify(10).definition().clone() };
    let bulk = || members.notify_as(slow.clone());
    let job = members.start(&bulk()).await;
    let patient = members
        .worker()
        .options(|options| options.drain = Duration::from_secs(3600))
        .bulk(bulk())
        .start()
        .await
        .unwrap();
    members.until(job, "a chunk is done", |view| view.counts.chunks > 0).await;
    patient.shutdown().await;
    let view = members.view(job).await;
    assert_eq!(view.state, JobState::Pending, "{view:#?}");
    assert!(view.counts.done < 400, "{view:#?}");
    let next = members.worker().bulk(members.notify(10)).start().await.unwrap();
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 400).await;
    next.shutdown().await;
}

/// With fewer faults the test covers too little.
const FAULTS_MIN: u32 = 5;
/// More faults add no coverage, and each takes long on a busy machine.
const FAULTS_MAX: u32 = 12;

pub(crate) async fn workers_that_die_and_freeze_again_and_again_do_each_target_once(members: Members) {
    members.add(0..200_000).await;
    let bulk = members.notify(1_500);
    let mut workers = vec![worker(&members), worker(&members), worker(&members)];
    let mut random = fastrand::Rng::with_seed(3);
    let mut faults = 0;
    // On a slow machine, a run can end before there were enough faults.
    while faults < FAULTS_MIN {
        let job = members.start(&bulk).await;
        while faults < FAULTS_MAX && !has_moved(&members, job).await {
            let victim = workers.swap_remove(random.usize(..workers.len()));
            workers.push(kill_or_freeze(&members, victim, random.bool(), job, || worker(&members)).await);
            faults += 1;
        }
        while !has_moved(&members, job).await {}
        let view = members.until_state(job, JobState::Succeeded).await;
        assert_eq!((view.counts.done, view.counts.failed), (200_000, 0));
        members.assert_once_each(job, 200_000).await;
        members.scene.assert_history_folds(job).await;
    }
}

/// Kills a worker, or freezes it until another one has continued its run. Returns the worker that runs afterwards.
pub(crate) async fn kill_or_freeze(
    members: &Members,
    victim: Process,
    kill: bool,
    job: JobId,
    start: impl Fn() -> Process,
) -> Process {
    if kill {
        victim.kill().await;
        members.expire_leases().await;
        start()
    } else {
        pause(members, &victim).await;
        members.expire_leases().await;
        has_moved(members, job).await;
        victim.revive();
        victim
    }
}

pub(crate) async fn a_worker_whose_run_was_taken_over_can_neither_commit_a_chunk_nor_end_it(
    members: Members,
) {
    members.add(0..50).await;
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let mut old = members.take(&bulk).await;
    old.survey().await;
    old.chunk(10).await;
    members.rescue().await;
    if !members.is_sqlite() {
        // As in environments where the takeover may not terminate other sessions: the fence alone must be sufficient.
        members.home.tamper("update milepost.bulk set backend_pid = null").await;
    }
    let mut new = members.take(&bulk).await;
    let error = old.run.chunk(10).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    new.chunk(10).await;
    let error = old.run.survey().await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    let error = old.run.end(None).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    let view = members.view(job).await;
    assert_eq!((view.state, view.counts.done, view.ended_at), (JobState::Running, 20, None), "{view:#?}");
    members.assert_once_each(job, 20).await;
    for _ in 0..3 {
        new.chunk(10).await;
    }
    assert!(new.chunk(10).await.exhausted);
    new.run.end(None).await.unwrap();
    assert_eq!(members.view(job).await.state, JobState::Succeeded);
    members.assert_once_each(job, 50).await;
}

pub(crate) async fn a_run_that_its_job_has_left_is_fenced_before_anybody_else_takes_it(members: Members) {
    members.add(0..50).await;
    let bulk = members.notify(10);
    members.start(&bulk).await;
    let mut old = members.take(&bulk).await;
    old.survey().await;
    members.rescue().await;
    let error = old.run.chunk(10).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    // The run has been claimed again, but its new worker has not started.
    members.claim(&bulk).await;
    let error = old.run.chunk(10).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    assert_eq!(members.home.count("select count(*) from public.note").await, 0);
}
