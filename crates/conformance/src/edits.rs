//! Edits of jobs by operators.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{PAYLOAD_BYTES_MAX, Priority, StartAt};
use milepost_core::port::{JobEdit, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use milepost_testkit::examine::examine;
use milepost_testkit::scene::{LONG, Scene, failure, retry};
use milepost_testkit::wait;

fn payload(text: &str) -> Option<Box<RawValue>> {
    Some(RawValue::from_string(text.to_owned()).unwrap())
}

fn is_edited(payload: &str) -> bool {
    serde_json::from_str::<Value>(payload).unwrap() == json!({ "edited": true })
}

pub async fn a_job_runs_with_the_payload_of_its_last_edit(scene: Scene) {
    for state in
        [JobState::Pending, JobState::Blocked, JobState::RetryWait, JobState::Failed, JobState::Aborted]
    {
        let (job, holder) = scene.job_in(state).await;
        let edit = JobEdit {
            payload: payload(r#"{"edited": true}"#),
            note: Some(" typo ".into()),
            ..JobEdit::default()
        };
        assert_eq!(scene.store.edit_job(job, &edit).await.unwrap(), state);
        assert_eq!(scene.state(job).await, state);
        let entry = scene.history(job).await.pop().unwrap();
        assert_eq!((entry.verb, entry.from, entry.to), (Verb::Edit, Some(state), state));
        assert_eq!((entry.note.as_deref(), entry.ready_at), (Some("typo"), None));
        match state {
            JobState::Failed => drop(scene.operate(job, Operation::new(Verb::RetryNow)).await.unwrap()),
            JobState::Aborted => drop(scene.operate(job, Operation::new(Verb::Resume)).await.unwrap()),
            JobState::Blocked => drop(scene.finish_run(holder, true, End::Succeed { result: None }).await),
            _ => {}
        }
        wait::until("it is claimed with its new payload", || async {
            let claimed = scene.claim(10).await;
            claimed.iter().any(|claimed| claimed.run.job == job && is_edited(&claimed.payload))
        })
        .await;
        scene.assert_history_folds(job).await;
    }
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn an_edit_changes_the_place_and_the_attempts_of_a_job(scene: Scene) {
    let last = scene.enqueue(Scene::job()).await;
    let first = scene.enqueue(Scene::job().priority(Priority::LAST)).await;
    let edit = JobEdit { priority: Some(Priority::FIRST), max_attempts: Some(3), ..JobEdit::default() };
    scene.store.edit_job(first, &edit).await.unwrap();
    let later = JobEdit { start: Some(StartAt::After(LONG)), ..JobEdit::default() };
    scene.store.edit_job(last, &later).await.unwrap();
    let claimed = scene.claim(10).await;
    assert_eq!((claimed.len(), claimed[0].run.job, claimed[0].max_attempts), (1, first, 3));
    assert_eq!(scene.view(first).await.row.priority, 1);
    let now = JobEdit { start: Some(StartAt::Now), ..JobEdit::default() };
    scene.store.edit_job(last, &now).await.unwrap();
    assert_eq!(scene.claim(10).await.len(), 1);
}

pub async fn a_job_that_waits_always_has_an_attempt_left(scene: Scene) {
    let mut job = scene.running(Scene::job()).await;
    for _ in 0..2 {
        scene.finish(&job, retry(Duration::ZERO)).await;
        wait::until("it is claimed again", || async {
            scene.state(job.run.job).await == JobState::RetryWait
        })
        .await;
        job = scene.claim(1).await.remove(0);
    }
    scene.finish(&job, retry(Duration::ZERO)).await;
    let fewer = JobEdit { max_attempts: Some(1), ..JobEdit::default() };
    scene.store.edit_job(job.run.job, &fewer).await.unwrap();
    let row = scene.view(job.run.job).await.row;
    assert_eq!((row.attempt, row.max_attempts), (3, 4));
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Fail { failure: failure() }).await;
    let more = JobEdit { max_attempts: Some(9), ..JobEdit::default() };
    scene.store.edit_job(job.run.job, &more).await.unwrap();
    scene.operate(job.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    assert_eq!(
        scene.view(job.run.job).await.row.max_attempts,
        13,
        "a retry gives the new number of attempts"
    );
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn edits_that_do_not_fit_are_refused(scene: Scene) {
    let edit = JobEdit { max_attempts: Some(3), ..JobEdit::default() };
    for state in [JobState::Running, JobState::Succeeded, JobState::Canceled, JobState::Skipped] {
        let (job, _) = scene.job_in(state).await;
        let error = scene.store.edit_job(job, &edit).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Illegal { illegal, .. } if illegal.from == Some(state)),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains("only jobs that are blocked, pending, retry_wait, failed or aborted can"),
            "{error}"
        );
    }
    let error = scene.store.edit_job(JobId::new(), &edit).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchJob(_)), "{error:?}");

    let (failed, _) = scene.job_in(JobState::Failed).await;
    let entries = scene.history(failed).await.len();
    let refused = async |edit: JobEdit| match scene.store.edit_job(failed, &edit).await.unwrap_err() {
        StoreError::Invalid { invalid, .. } => invalid,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(JobEdit::default()).await, InvalidJob::EditsNothing);
    let start = JobEdit { start: Some(StartAt::Now), ..JobEdit::default() };
    assert_eq!(refused(start).await, InvalidJob::NoStart { state: JobState::Failed });
    let large = to_raw_value(&"x".repeat(PAYLOAD_BYTES_MAX)).unwrap();
    let large = refused(JobEdit { payload: Some(large), ..JobEdit::default() }).await;
    assert!(matches!(large, InvalidJob::PayloadTooLarge { .. }), "{large:?}");
    assert!(matches!(
        refused(JobEdit { max_attempts: Some(0), ..JobEdit::default() }).await,
        InvalidJob::OutOfRange { .. }
    ));
    assert_eq!(scene.history(failed).await.len(), entries, "a refused edit leaves no entry");
    assert!(
        scene.operate(failed, Operation::new(Verb::Edit)).await.is_err(),
        "an edit is no operation without its fields"
    );
}

pub async fn an_edit_of_a_waiting_job_of_a_group_gives_it_its_slot(scene: Scene) {
    let later = Scene::job().group("g").start(StartAt::After(LONG));
    let job = scene.enqueue(later).await;
    assert_eq!(scene.state(job).await, JobState::Blocked);
    let now = JobEdit { start: Some(StartAt::Now), ..JobEdit::default() };
    scene.store.edit_job(job, &now).await.unwrap();
    wait::until("it has the slot", || async { scene.state(job).await == JobState::Pending }).await;
    scene.assert_history_folds(job).await;
    assert_eq!(json!(scene.view(job).await.row.group), "g");
}
