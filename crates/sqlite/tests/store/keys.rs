//! A key has at most one job.

use milepost_core::job::Enqueued;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_core::state::JobState;

use crate::fixture::{Home, job};

#[tokio::test]
async fn a_key_used_again_answers_with_the_same_job_also_within_one_call() {
    let home = Home::new().await;
    let jobs = [job("a").key("k"), job("a").key("k"), job("b").key("k")];
    let first = home.store.enqueue_many(&jobs).await.unwrap();
    assert_eq!(first[1].job, first[0].job);
    assert_eq!(
        first
            .iter()
            .map(|enqueued| enqueued.duplicate)
            .collect::<Vec<_>>(),
        [false, true, false]
    );
    let again = home.store.enqueue_many(&[job("a").key("k")]).await.unwrap();
    assert_eq!(
        again,
        [Enqueued {
            job: first[0].job,
            duplicate: true
        }]
    );
    assert_eq!(
        home.store.count_by_state().await.unwrap(),
        [(JobState::Pending, 2)]
    );
}

#[tokio::test]
async fn the_same_job_sent_again_is_a_duplicate() {
    let home = Home::new().await;
    for new in [job("a"), job("a").key("k"), job("a").group("g")] {
        let first = home.store.enqueue_many(std::slice::from_ref(&new)).await.unwrap();
        let again = home.store.enqueue_many(std::slice::from_ref(&new)).await.unwrap();
        assert_eq!(first[0].job, again[0].job);
        assert!(!first[0].duplicate && again[0].duplicate);
        assert_eq!(home.store.history(new.id).await.unwrap().len(), 1);
    }
    let mut other_key = job("a").key("first");
    home.store.enqueue_many(&[other_key.clone()]).await.unwrap();
    other_key.key = Some("second".to_owned());
    assert!(home.store.enqueue_many(&[other_key]).await.unwrap()[0].duplicate);
    let free = home.store.enqueue_many(&[job("a").key("second")]).await.unwrap();
    assert!(!free[0].duplicate);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_file_that_race_for_keys_make_one_job_each() {
    let home = Home::new().await;
    let stores = [home.store.clone(), home.neighbour()];
    let racers = stores.map(|store| {
        tokio::spawn(async move {
            let mut won = 0;
            for n in 0..200 {
                let jobs = [job("a").key(format!("k{n}"))];
                won += usize::from(!store.enqueue_many(&jobs).await.unwrap()[0].duplicate);
            }
            won
        })
    });
    let mut won = 0;
    for racer in racers {
        won += racer.await.unwrap();
    }
    assert_eq!(won, 200);
    assert_eq!(
        home.store.count_by_state().await.unwrap(),
        [(JobState::Pending, 200)]
    );
}
