//! Feed: every change is reported once and in order, for all page sizes.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::feed::{Activity, Change, FeedPosition, InvalidFeed, JobChange};
use milepost_core::finish::End;
use milepost_core::history::HistoryEntry;
use milepost_core::job::StartAt;
use milepost_core::port::{Operation, Store, StoreResult};
use milepost_core::transition::Verb;
use serde_json::json;

use super::batches::{Batches, done, graph};
use milepost_testkit::scene::{KIND, Scene, failure, retry};

/// Returns all changes after a position, read in pages of this size, and the position after them.
pub async fn read_on(
    store: &Arc<dyn Store>,
    from: &FeedPosition,
    limit: u32,
) -> (Vec<(FeedPosition, Change)>, FeedPosition) {
    let (mut changes, mut at) = (Vec::new(), from.clone());
    loop {
        let page = store.feed(&at, None, limit).await.expect("read");
        let moved = page.end != at;
        at = page.end;
        changes.extend(page.changes);
        if !page.more && !moved {
            return (changes, at);
        }
    }
}

/// Returns the job changes among these changes.
pub fn of_jobs(changes: &[(FeedPosition, Change)]) -> Vec<&JobChange> {
    changes
        .iter()
        .filter_map(|(_, change)| match change {
            Change::Job(change) => Some(change),
            Change::Batch(_) => None,
        })
        .collect()
}

/// Runs a job that fails, is retried and then ends, and another that is canceled. Returns their history.
async fn live(scene: &Scene) -> Vec<HistoryEntry> {
    let one = scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, retry(Duration::ZERO)).await;
    let other = scene.enqueue(Scene::job().start(StartAt::After(Duration::from_secs(3600)))).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Fail { failure: failure() }).await;
    scene.operate(other, Operation::new(Verb::Cancel)).await.unwrap();
    let mut all = scene.history(one).await;
    all.extend(scene.history(other).await);
    all.sort_by_key(|entry| entry.pos);
    all
}

pub async fn what_happens_is_told_once_and_in_order(scene: Scene) {
    scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Succeed { result: None }).await;
    let from = scene.store.feed_end().await.unwrap();
    let history = live(&scene).await;
    for limit in [1, 2, 3, 1000] {
        let (changes, end) = read_on(&scene.store, &from, limit).await;
        let told = of_jobs(&changes);
        assert_eq!(told.len(), history.len(), "in pages of {limit}: {changes:#?}");
        for (told, entry) in told.iter().zip(&history) {
            assert_eq!((told.pos, told.job, told.at), (entry.pos, entry.job, entry.at));
            assert_eq!((told.verb, told.from, told.to), (entry.verb, entry.from, entry.to));
            assert_eq!((told.attempt, told.worker), (entry.attempt, entry.worker));
            assert_eq!((told.ready_at, &told.error_code), (entry.ready_at, &entry.error_code));
            assert_eq!((told.kind.as_deref(), told.queue.as_deref()), (Some(KIND), Some("default")));
        }
        assert!(read_on(&scene.store, &end, limit).await.0.is_empty());
    }
}

pub async fn every_position_goes_on_exactly_there(scene: Scene) {
    let from = scene.store.feed_end().await.unwrap();
    live(&scene).await;
    let (whole, _) = read_on(&scene.store, &from, 1000).await;
    let places =
        |changes: &[(FeedPosition, Change)]| of_jobs(changes).iter().map(|c| c.pos).collect::<Vec<_>>();
    for (n, (position, _)) in whole.iter().enumerate() {
        let again: FeedPosition = position.as_str().parse().unwrap();
        let (rest, _) = read_on(&scene.store, &again, 2).await;
        assert_eq!(places(&rest), places(&whole[n + 1..]), "after change {n} at {position}");
    }
}

pub async fn what_happens_to_a_batch_is_told(scene: Scene) {
    let on = Batches::on(Arc::clone(&scene.store)).await;
    let from = scene.store.feed_end().await.unwrap();
    let batch = on.run(graph("close", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    on.step(batch, &["a"], done()).await;
    on.step(batch, &["b"], done()).await;
    for limit in [1, 4, 1000] {
        let (changes, _) = read_on(&scene.store, &from, limit).await;
        let told: Vec<_> = changes
            .iter()
            .filter_map(|(_, change)| match change {
                Change::Batch(change) => Some(change),
                Change::Job(_) => None,
            })
            .collect();
        let history = on.history(batch).await;
        assert_eq!(told.len(), history.len(), "{changes:#?}");
        for (told, entry) in told.iter().zip(&history) {
            assert_eq!((told.batch, told.dag.as_deref()), (batch, Some("close")));
            assert_eq!(
                (told.pos, told.task, told.at, told.verb),
                (entry.pos, entry.task, entry.at, entry.verb)
            );
            assert_eq!((&told.from, &told.to), (&entry.from, &entry.to));
        }
        let jobs = of_jobs(&changes);
        assert_eq!(jobs.len(), 6, "two tasks were created, claimed and succeeded: {jobs:#?}");
        assert!(jobs.iter().all(|change| change.batch == Some(batch)));
    }
}

pub async fn a_batch_is_told_after_all_that_was_before_it_was_forgotten(scene: Scene) {
    let on = Batches::on(Arc::clone(&scene.store)).await;
    let one = || graph("close", &[("a", &[])]);
    let batch = on.run(one(), json!({})).await;
    on.step(batch, &["a"], done()).await;
    let seen = scene.store.feed_end().await.unwrap();
    while scene.store.prune_batches(Duration::ZERO).await.unwrap() > 0 {}
    assert!(scene.store.batch(batch).await.unwrap().is_none());
    let next = on.run(one(), json!({})).await;
    let (changes, _) = read_on(&scene.store, &seen, 100).await;
    let told = changes.iter().filter(|(_, change)| matches!(change, Change::Batch(of) if of.batch == next));
    assert_eq!(told.count(), on.history(next).await.len(), "{changes:#?}");
}

fn refused<T: std::fmt::Debug>(answer: StoreResult<T>) -> InvalidFeed {
    match answer {
        Err(StoreError::Feed(invalid)) => invalid,
        other => panic!("not refused: {other:?}"),
    }
}

pub async fn a_position_that_nobody_gave_out_is_refused(scene: Scene) {
    for text in ["x", "s1", "s-1.0", "s1.2.3", "7fa3/10:20", "7fa3/20:10:", "7fa3/1:2:/3:4:/x5"] {
        let position = text.parse().unwrap();
        let answer = scene.store.feed(&position, None, 10).await;
        assert_eq!(refused(answer), InvalidFeed::NotAPosition, "{text}");
        let answer = scene.store.activity(&position, 10).await;
        assert_eq!(refused(answer), InvalidFeed::NotAPosition, "{text}");
    }
    assert_eq!("not one word".parse::<FeedPosition>(), Err(InvalidFeed::NotAPosition));
    let end = scene.store.feed_end().await.unwrap();
    // A position that this store will reach only in many years, and one of another server.
    for text in ["s900000000000.0", "7fa30/4000000000000000:4000000000000000:"] {
        let position = text.parse().unwrap();
        let answers = [
            scene.store.feed(&position, Some(&end), 10).await.map(drop),
            scene.store.activity(&position, 10).await.map(drop),
        ];
        for refused in answers.map(refused) {
            assert!(matches!(refused, InvalidFeed::Foreign | InvalidFeed::NotAPosition), "{text}: {refused}");
        }
    }
}

pub async fn what_came_after_a_position_can_be_left_for_later(scene: Scene) {
    let from = scene.store.feed_end().await.unwrap();
    let first = scene.enqueue(Scene::job()).await;
    let middle = scene.store.feed_end().await.unwrap();
    let second = scene.enqueue(Scene::job()).await;
    let page = scene.store.feed(&from, Some(&middle), 10).await.unwrap();
    assert_eq!(of_jobs(&page.changes).iter().map(|change| change.job).collect::<Vec<_>>(), [first]);
    assert_eq!(page.end, middle);
    let end = scene.store.feed_end().await.unwrap();
    let page = scene.store.feed(&end, Some(&middle), 10).await.unwrap();
    assert!(page.changes.is_empty() && page.end == end, "a reader ahead of the limit waits: {page:?}");
    let page = scene.store.feed(&middle, None, 10).await.unwrap();
    assert_eq!(of_jobs(&page.changes).iter().map(|change| change.job).collect::<Vec<_>>(), [second]);
}

/// Returns how often the verb occurred in all seconds, and the number of durations reported with it.
fn counted(activity: &Activity, verb: Verb) -> (u64, usize) {
    let of = activity.counted.iter().filter(|counted| counted.verb == verb);
    of.fold((0, 0), |(times, told), counted| (times + counted.times, told + counted.took_ms.len()))
}

pub async fn what_began_and_ended_is_counted_once(scene: Scene) {
    let mut at = scene.store.feed_end().await.unwrap();
    for _ in 0..2 {
        live(&scene).await;
        let activity = scene.store.activity(&at, 100).await.unwrap();
        assert_eq!(counted(&activity, Verb::Claim), (2, 2));
        assert_eq!(counted(&activity, Verb::Retry), (1, 0));
        assert_eq!(counted(&activity, Verb::Fail), (1, 0));
        assert_eq!(activity.counted.iter().map(|of| of.times).sum::<u64>(), 4, "{activity:#?}");
        at = activity.end;
    }
    let nothing = scene.store.activity(&at, 100).await.unwrap();
    assert!(nothing.counted.is_empty(), "{nothing:#?}");
}

pub async fn how_long_jobs_waited_and_ran_is_told_of_some(scene: Scene) {
    let at = scene.store.feed_end().await.unwrap();
    for _ in 0..20 {
        scene.enqueue(Scene::job()).await;
    }
    let created = scene.store.activity(&at, 100).await.unwrap();
    assert!(created.counted.is_empty(), "a wait that has not ended is not counted");
    let runs = scene.claim(20).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    for run in &runs {
        scene.finish(run, End::Succeed { result: None }).await;
    }
    let all = scene.store.activity(&at, 1_000).await.unwrap();
    assert_eq!(counted(&all, Verb::Claim), (20, 20));
    assert_eq!(counted(&all, Verb::Succeed), (20, 20));
    let ran = all.counted.iter().filter(|counted| counted.verb == Verb::Succeed);
    assert!(ran.flat_map(|counted| &counted.took_ms).all(|&ms| ms >= 50), "{all:#?}");
    let none = scene.store.activity(&at, 0).await.unwrap();
    assert_eq!(counted(&none, Verb::Claim), (20, 0));
}
