//! Enqueuing of jobs.

use futures::future::join_all;
use milepost_core::error::StoreError;
use milepost_core::job::{KeyHolder, NewJob};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use serde_json::json;

use milepost_testkit::scene::{KIND, Scene};

pub async fn a_key_has_at_most_one_job(scene: Scene) {
    let first = scene.try_enqueue(Scene::job().key("order-1")).await.unwrap();
    let again = scene.try_enqueue(Scene::job().key("order-1").queue("elsewhere")).await.unwrap();
    assert!(!first.duplicate && again.duplicate);
    assert_eq!(first.job, again.job);
    let view = scene.view(first.job).await;
    assert_eq!(view.row.queue, "default", "the second call changed nothing");
    assert_eq!(scene.history(first.job).await.len(), 1);

    let other_kind = NewJob::new("other", &()).unwrap().key("order-1");
    assert!(!scene.try_enqueue(other_kind).await.unwrap().duplicate, "keys are per kind");
}

pub async fn a_key_twice_in_one_call_makes_one_job(scene: Scene) {
    let jobs = [Scene::job().key("a"), Scene::job().key("b"), Scene::job().key("a")];
    let answers = scene.store.enqueue_many(&jobs).await.unwrap();
    assert_eq!(answers[0].job, answers[2].job);
    assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 2);
    assert_eq!(scene.store.jobs(&JobFilter::default()).await.unwrap().len(), 2);
}

pub async fn of_many_jobs_with_one_key_in_a_call_the_first_is_made(scene: Scene) {
    for others in [0, 1, 20, 98, 300] {
        let key = format!("shared-{others}");
        let shared = || Scene::job().key(&key);
        let mut jobs = vec![shared()];
        jobs.extend((0..others).map(|n| Scene::job().key(format!("{others}-{n}"))));
        jobs.push(shared());
        let answers = scene.store.enqueue_many(&jobs).await.unwrap();
        let (first, last) = (answers[0], answers[answers.len() - 1]);
        assert_eq!((first.duplicate, last.duplicate), (false, true), "{others} jobs in between");
        assert_eq!((first.job, last.job), (jobs[0].id, jobs[0].id));
    }
}

pub async fn fifty_callers_with_one_key_make_one_job(scene: Scene) {
    let calls = (0..50).map(|_| {
        let scene = scene.clone();
        tokio::spawn(async move { scene.try_enqueue(Scene::job().key("the-one")).await.unwrap() })
    });
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 1);
    assert!(answers.iter().all(|answer| answer.job == answers[0].job));
    assert_eq!(scene.claim(100).await.len(), 1);
}

pub async fn calls_with_the_same_keys_in_opposite_order_both_return(scene: Scene) {
    for round in 0..10 {
        let jobs = |reversed: bool| {
            let mut jobs: Vec<NewJob> = (0..200).map(|n| Scene::job().key(format!("{round}-{n}"))).collect();
            if reversed {
                jobs.reverse();
            }
            jobs
        };
        let (forwards, backwards) = (jobs(false), jobs(true));
        let (one, other) =
            tokio::join!(scene.store.enqueue_many(&forwards), scene.store.enqueue_many(&backwards));
        let (one, mut other) = (one.unwrap(), other.unwrap());
        other.reverse();
        let made = one.iter().chain(&other).filter(|answer| !answer.duplicate).count();
        assert_eq!(made, 200);
        assert!(one.iter().zip(&other).all(|(a, b)| a.job == b.job));
    }
}

pub async fn a_call_repeated_after_a_lost_answer_changes_nothing(scene: Scene) {
    let jobs = [Scene::job(), Scene::job().key("k"), Scene::job()];
    let first = scene.store.enqueue_many(&jobs).await.unwrap();
    let again = scene.store.enqueue_many(&jobs).await.unwrap();
    assert!(first.iter().zip(&again).all(|(a, b)| a.job == b.job && b.duplicate), "{again:?}");
    assert_eq!(scene.claim(100).await.len(), 3);
}

pub async fn who_holds_a_key_is_told_and_whether_it_was_asked_for_with_the_same(scene: Scene) {
    let asked =
        |payload: &str| NewJob::from_json(KIND, payload.to_owned()).unwrap().key("k").queue("q").group("g");
    let held = scene.enqueue(asked(r#"{"a": 1e2, "b": [true]}"#)).await;
    let others = [
        asked(r#"{"b":[true],"a":100}"#),
        asked(r#"{"a": 101}"#),
        asked(r#"{"a": 1e2, "b": [true]}"#).queue("another"),
        asked(r#"{"a": 1e2, "b": [true]}"#).group("another"),
        asked("1").key("free"),
        NewJob::new("another", &1).unwrap().key("k"),
        Scene::job(),
    ];
    let answers = scene.store.key_holders(&others.iter().collect::<Vec<_>>()).await.unwrap();
    let is = |is_same| Some(KeyHolder { job: held, is_same: Some(is_same) });
    assert_eq!(answers, [is(true), is(false), is(false), is(false), None, None, None]);
}

pub async fn one_bad_job_refuses_the_whole_call(scene: Scene) {
    let bad = [
        Scene::job().queue(""),
        Scene::job().max_attempts(0),
        NewJob::from_json(KIND, "\"\\u0000\"".to_owned()).unwrap(),
        NewJob::new(KIND, &"x".repeat(2 * 1024 * 1024)).unwrap(),
    ];
    for job in bad {
        let error = scene.store.enqueue_many(&[Scene::job(), job]).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { index: 1, .. }), "{error:?}");
    }
    assert!(scene.store.jobs(&JobFilter::default()).await.unwrap().is_empty(), "nothing was stored");
}

pub async fn payloads_come_back_as_they_were(scene: Scene) {
    let payload = json!({ "text": "naïve ☃ \"quoted\" \\ \u{1F600}", "list": [1, -2.5, null, true], "deep": { "a": {} } });
    let id = scene.enqueue(NewJob::new(KIND, &payload).unwrap()).await;
    let claimed = scene.claim(1).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&claimed[0].payload).unwrap(), payload);
    let view = scene.view(id).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(view.payload.get()).unwrap(), payload);
    assert_eq!(view.row.state, JobState::Running);
}
