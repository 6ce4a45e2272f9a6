//! Run tokens: writes with an old token change nothing.

use std::time::Duration;

use milepost_core::finish::{End, Failure, Finish, Finished};
use milepost_core::ident::Run;
use milepost_core::port::{Operated, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, Report};

use milepost_testkit::scene::{LONG, Scene, failure, register, retry};

fn every_end() -> [End; 6] {
    [
        End::Succeed { result: Some("1".to_owned()) },
        retry(Duration::ZERO),
        End::Fail { failure: failure() },
        End::Yield { delay: LONG, note: "later".to_owned() },
        End::Cancel,
        End::Abort,
    ]
}

pub async fn a_stale_token_changes_nothing_in_any_write(scene: Scene) {
    let old = scene.running(Scene::job()).await.run;
    let first = Finish { run: old, end: retry(Duration::ZERO), grouped: false, task: false };
    scene.store.finish_many(scene.worker, &[first]).await.unwrap();
    let new = scene.claim(1).await.remove(0);
    assert_eq!(new.run.job, old.job);
    let before = scene.history(old.job).await.len();

    for end in every_end() {
        // The retry is recognized, because that run ended with it. All other ends are fenced.
        let expected = if matches!(end, End::Retry { .. }) { Finished::Repeated } else { Finished::Fenced };
        assert_eq!(scene.finish_run(old, false, end.clone()).await, expected, "{end:?}");
    }
    let progress = Some(Progress { done: 9, total: None, message: None });
    let reports = [Report { run: old, progress, checkpoint: Some("\"stale\"".to_owned()) }];
    assert_eq!(scene.store.report_many(&reports).await.unwrap(), [false]);

    assert_eq!(scene.history(old.job).await.len(), before, "nothing was changed");
    let view = scene.view(old.job).await;
    assert_eq!(view.row.state, JobState::Running);
    assert_eq!(view.row.token, new.run.token);
    assert!(view.progress.is_none() && view.checkpoint.is_none());
    let future = Run { token: milepost_core::ident::RunToken(new.run.token.0 + 1), ..new.run };
    assert_eq!(scene.finish_run(future, false, End::Succeed { result: None }).await, Finished::Fenced);
}

pub async fn an_end_told_twice_is_known_to_be_the_same(scene: Scene) {
    let unstorable = Failure { code: "a\0b".to_owned(), message: "a\0b".to_owned() };
    for end in every_end().into_iter().chain([End::Fail { failure: unstorable }]) {
        let job = scene.running(Scene::job()).await;
        assert_eq!(scene.finish(&job, end.clone()).await, Finished::Accepted, "{end:?}");
        assert_eq!(scene.finish(&job, end.clone()).await, Finished::Repeated, "{end:?}");
        let other =
            if matches!(end, End::Fail { .. }) { End::Cancel } else { End::Fail { failure: failure() } };
        assert_eq!(scene.finish(&job, other).await, Finished::Fenced, "another end after {end:?} is fenced");
        scene.assert_history_folds(job.run.job).await;
        // Remove it, so that the next claim does not find it.
        if !scene.state(job.run.job).await.is_ended() {
            scene.operate(job.run.job, Operation::new(Verb::Cancel)).await.unwrap();
        }
    }
}

pub async fn an_end_of_another_worker_is_fenced(scene: Scene) {
    let other = register(&scene.store, LONG).await;
    for end in every_end() {
        let job = scene.running(Scene::job()).await;
        let finish = Finish { run: job.run, end: end.clone(), grouped: false, task: false };
        assert_eq!(scene.tell(other, finish).await, Finished::Fenced, "{end:?}");
        assert_eq!(scene.finish(&job, end.clone()).await, Finished::Accepted, "{end:?}");
        // Remove it, so that the next claim does not find it.
        if !scene.state(job.run.job).await.is_ended() {
            scene.operate(job.run.job, Operation::new(Verb::Cancel)).await.unwrap();
        }
    }
}

pub async fn of_two_runs_of_a_job_in_one_batch_of_ends_only_the_newer_one_ends_it(scene: Scene) {
    for end in every_end() {
        let old = scene.running(Scene::job()).await.run;
        let later = Finish { run: old, end: retry(Duration::ZERO), grouped: false, task: false };
        scene.store.finish_many(scene.worker, &[later]).await.unwrap();
        let new = scene.claim(1).await.remove(0).run;
        assert_eq!(new.job, old.job);
        let of = |run| Finish { run, end: end.clone(), grouped: false, task: false };
        // The old run has ended with a retry.
        let of_old = if matches!(end, End::Retry { .. }) { Finished::Repeated } else { Finished::Fenced };
        for of_new in [Finished::Accepted, Finished::Repeated] {
            let answers = scene.store.finish_many(scene.worker, &[of(old), of(new)]).await.unwrap();
            assert_eq!(answers, [of_old, of_new], "{end:?}");
        }
        if !scene.state(old.job).await.is_ended() {
            scene.operate(old.job, Operation::new(Verb::Cancel)).await.unwrap();
        }
    }
}

pub async fn a_batch_of_ends_is_answered_one_by_one(scene: Scene) {
    let jobs: Vec<_> = (0..30).map(|_| Scene::job()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    let claimed = scene.claim(30).await;
    let ends = every_end();
    let finishes: Vec<Finish> = claimed
        .iter()
        .enumerate()
        .map(|(at, job)| {
            let mut run = job.run;
            if at % 5 == 0 {
                run.token.0 -= 1;
            }
            Finish { run, end: ends[at % ends.len()].clone(), grouped: false, task: false }
        })
        .collect();
    let answers = scene.store.finish_many(scene.worker, &finishes).await.unwrap();
    for (at, (finish, answer)) in finishes.iter().zip(answers).enumerate() {
        let expected = if at % 5 == 0 { Finished::Fenced } else { Finished::Accepted };
        assert_eq!(answer, expected, "end {at}");
        scene.assert_history_folds(finish.run.job).await;
    }
}

pub async fn checkpoints_and_progress_are_kept_for_the_next_attempt(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    let progress = Progress { done: 3, total: Some(10), message: Some("third".to_owned()) };
    let report = |progress, checkpoint: Option<&str>| Report {
        run: job.run,
        progress,
        checkpoint: checkpoint.map(str::to_owned),
    };
    let reports = [report(Some(progress.clone()), None)];
    assert_eq!(scene.store.report_many(&reports).await.unwrap(), [true]);
    let reports = [report(None, Some("{\"row\":3}"))];
    assert_eq!(scene.store.report_many(&reports).await.unwrap(), [true]);
    scene.finish(&job, retry(Duration::ZERO)).await;

    let view = scene.view(job.run.job).await;
    assert_eq!(view.progress, Some(progress), "a checkpoint does not change the progress");
    let checkpoint = scene.store.checkpoint(job.run.job).await.unwrap().expect("kept");
    let checkpoint: serde_json::Value = serde_json::from_str(&checkpoint).unwrap();
    assert_eq!(checkpoint, serde_json::json!({ "row": 3 }));
}

pub async fn a_run_that_was_asked_to_stop_does_not_come_back(scene: Scene) {
    let stops = [(Verb::Cancel, JobState::Canceled), (Verb::Abort, JobState::Aborted)];
    for (verb, state) in stops {
        let ends = [
            retry(Duration::ZERO),
            End::Fail { failure: failure() },
            End::Yield { delay: LONG, note: "later".to_owned() },
        ];
        for end in ends {
            let job = scene.running(Scene::job().group("g")).await;
            let operation = Operation::new(verb).grace(LONG).note("the customer called");
            assert_eq!(scene.operate(job.run.job, operation).await.unwrap(), Operated::StopRequested);
            assert_eq!(scene.finish(&job, end.clone()).await, Finished::Accepted, "{end:?}");
            assert_eq!(scene.state(job.run.job).await, state, "{verb} and then {end:?}");
            let last = scene.history(job.run.job).await.pop().unwrap();
            assert_eq!((last.verb, last.note.as_deref()), (verb, Some("the customer called")));
            let failed = matches!(end, End::Retry { .. } | End::Fail { .. });
            assert_eq!(last.error_code.is_some(), failed, "the error of the attempt is stored");
            let expected = if failed { Finished::Repeated } else { Finished::Fenced };
            assert_eq!(scene.finish(&job, end.clone()).await, expected, "{end:?} again after {verb}");
            assert_eq!(scene.finish(&job, End::Succeed { result: None }).await, Finished::Fenced);
            scene.assert_history_folds(job.run.job).await;
        }
    }
    assert_eq!(scene.running(Scene::job().group("g")).await.attempt, 1, "the next job of the group runs");
}

pub async fn a_failure_that_is_reported_after_its_run_was_stopped_is_fenced(scene: Scene) {
    for verb in [Verb::Cancel, Verb::Abort] {
        let job = scene.running(Scene::job()).await;
        scene.operate(job.run.job, Operation::new(verb).grace(Duration::ZERO)).await.unwrap();
        assert_eq!(scene.finish(&job, retry(Duration::ZERO)).await, Finished::Fenced, "after {verb}");
        let same = if verb == Verb::Cancel { End::Cancel } else { End::Abort };
        assert_eq!(scene.finish(&job, same).await, Finished::Repeated, "the run ended so, after {verb}");
    }
}

pub async fn a_requested_cancel_is_final_whatever_is_requested_or_reported_beside_it(scene: Scene) {
    let abort_with = |grace| Operation::new(Verb::Abort).grace(grace);
    // Requests before and after the cancel, and the reported end. `None`: the last request ended the run.
    let cases = [
        (None, Some(abort_with(LONG)), Some(End::Abort)),
        (None, Some(abort_with(LONG)), Some(retry(Duration::ZERO))),
        (None, Some(abort_with(Duration::ZERO)), None),
        (Some(abort_with(LONG)), None, Some(End::Abort)),
    ];
    for (before, after, end) in cases {
        let case = format!("{before:?}, {after:?}, {end:?}");
        let job = scene.running(Scene::job().group("g")).await;
        let cancel = Operation::new(Verb::Cancel).grace(LONG).note("the customer called");
        for request in before.into_iter().chain([cancel]).chain(after) {
            scene.operate(job.run.job, request).await.unwrap();
        }
        if let Some(end) = end {
            assert_eq!(scene.finish(&job, end).await, Finished::Accepted, "{case}");
        }
        assert_eq!(scene.state(job.run.job).await, JobState::Canceled, "{case}");
        let last = scene.history(job.run.job).await.pop().unwrap();
        assert_eq!((last.verb, last.note.as_deref()), (Verb::Cancel, Some("the customer called")), "{case}");
        scene.assert_history_folds(job.run.job).await;
    }
}
