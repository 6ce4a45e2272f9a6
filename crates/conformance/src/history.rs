//! History: one entry for every change, and the entries fold to the state.

use std::time::Duration;

use milepost_core::claim::ClaimedJob;
use milepost_core::finish::End;
use milepost_core::history::HistoryPart;
use milepost_core::ident::JobId;
use milepost_core::port::Operation;
use milepost_core::transition::Verb;

use milepost_testkit::scene::{KIND, Scene, failure, retry};

pub async fn every_change_has_one_entry_and_folds_to_the_state(scene: Scene) {
    let id = scene.enqueue(Scene::job()).await;
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, retry(Duration::ZERO)).await;
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Fail { failure: failure() }).await;
    scene.operate(id, Operation::new(Verb::RetryNow).note("fixed it")).await.unwrap();
    let job = scene.claim(1).await.remove(0);
    assert_eq!(job.kind, KIND);
    scene.finish(&job, End::Succeed { result: Some("{\"n\":1}".to_owned()) }).await;

    let history = scene.history(id).await;
    let verbs: Vec<Verb> = history.iter().map(|entry| entry.verb).collect();
    use Verb::{Claim, Create, Fail, Retry, RetryNow, Succeed};
    assert_eq!(verbs, [Create, Claim, Retry, Claim, Fail, RetryNow, Claim, Succeed]);
    assert_eq!(history[5].note.as_deref(), Some("fixed it"));
    assert_eq!(history[4].error_message.as_deref(), Some("failed on purpose"));
    assert!(history.windows(2).all(|pair| pair[0].pos < pair[1].pos && pair[0].at <= pair[1].at));
    assert!(history[1..5].iter().all(|entry| entry.worker == Some(scene.worker)));
    scene.assert_history_folds(id).await;
    let result = scene.view(id).await.result.expect("kept");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(result.get()).unwrap(),
        serde_json::json!({ "n": 1 })
    );
}

pub async fn a_part_of_a_history_is_read(scene: Scene) {
    let (first, second) = (scene.enqueue(Scene::job()).await, scene.enqueue(Scene::job()).await);
    for _ in 0..3 {
        for job in [first, second] {
            scene.operate(job, Operation::new(Verb::Abort)).await.unwrap();
            scene.operate(job, Operation::new(Verb::Resume)).await.unwrap();
        }
    }
    let all: Vec<i64> = scene.history(first).await.iter().map(|entry| entry.pos).collect();
    assert_eq!(all.len(), 7);
    let read = async |part: HistoryPart| -> Vec<i64> {
        scene.store.history(first, part).await.unwrap().iter().map(|entry| entry.pos).collect()
    };
    assert_eq!(read(HistoryPart::After { pos: 0, limit: 3 }).await, all[..3]);
    assert_eq!(read(HistoryPart::After { pos: all[2], limit: 3 }).await, all[3..6]);
    assert_eq!(read(HistoryPart::After { pos: all[5], limit: 3 }).await, all[6..]);
    assert_eq!(read(HistoryPart::After { pos: all[6], limit: 3 }).await, [0; 0]);
    assert_eq!(read(HistoryPart::Newest { limit: 3 }).await, all[4..]);
    assert_eq!(read(HistoryPart::Newest { limit: 9 }).await, all);
}

/// Performs six hundred random steps on the jobs that they create. The printed seed reproduces a run.
pub async fn random_lives_fold_to_the_state(scene: Scene) {
    let seed = std::env::var("MILEPOST_TEST_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    println!("MILEPOST_TEST_SEED={seed}");
    let mut jobs: Vec<JobId> = Vec::new();
    let mut held: Vec<ClaimedJob> = Vec::new();
    for _ in 0..600 {
        step(&scene, &mut random, &mut jobs, &mut held).await;
    }
    for job in jobs {
        scene.assert_history_folds(job).await;
    }
}

async fn step(scene: &Scene, random: &mut fastrand::Rng, jobs: &mut Vec<JobId>, held: &mut Vec<ClaimedJob>) {
    match random.u8(0..10) {
        0 | 1 => {
            let mut job = Scene::job().max_attempts(random.u32(1..4));
            if random.bool() {
                job = job.group(["red", "green"][random.usize(0..2)]);
            }
            jobs.push(scene.enqueue(job).await);
        }
        2 | 3 => held.extend(scene.claim(random.u32(1..4)).await),
        4..=6 if !held.is_empty() => {
            // Sometimes this run has already ended; then its end must be fenced.
            let job = held[random.usize(0..held.len())].clone();
            let ends = [
                End::Succeed { result: None },
                retry(Duration::ZERO),
                End::Fail { failure: failure() },
                End::Yield { delay: Duration::ZERO, note: "later".to_owned() },
                End::Cancel,
                End::Abort,
            ];
            scene.finish(&job, ends[random.usize(0..ends.len())].clone()).await;
        }
        _ if !jobs.is_empty() => {
            let verbs = [
                Verb::Cancel,
                Verb::Skip,
                Verb::Mark,
                Verb::Abort,
                Verb::RetryNow,
                Verb::Resume,
                Verb::Rerun,
                Verb::Snooze,
            ];
            let job = jobs[random.usize(0..jobs.len())];
            // Some operations are rejected; a rejected operation must change nothing.
            let _ = scene.operate(job, Operation::new(verbs[random.usize(0..verbs.len())])).await;
        }
        _ => {}
    }
}
