//! Rollups: starts and ends of jobs are counted once, by minute, queue and kind.

use std::time::Duration;

use futures::future::join_all;
use milepost_core::finish::End;
use milepost_core::port::Store;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use milepost_core::rollup::{EVERY, Range, RollupFilter, SAMPLE_MAX, Series};
use serde_json::json;

use milepost_core::token::TokenScope;
use milepost_testkit::scene::{KIND, Scene, failure, retry};

/// The numbers of attempts that started, succeeded and failed in the last hour.
async fn counted(store: &dyn Store, filter: RollupFilter) -> [u64; 3] {
    let rollups = store.rollups(&filter).await.unwrap();
    let series = Series::of(&rollups, filter.range);
    [&series.started, &series.succeeded, &series.failed].map(|times| times.iter().sum())
}

async fn all(scene: &Scene) -> [u64; 3] {
    counted(scene.store.as_ref(), RollupFilter::default()).await
}

/// Runs a job that fails, is retried and succeeds, and another that fails.
async fn live(scene: &Scene) {
    scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, retry(Duration::ZERO)).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Succeed { result: None }).await;
    scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Fail { failure: failure() }).await;
}

pub async fn starts_and_ends_are_counted_once_whoever_counts(scene: Scene) {
    live(&scene).await;
    assert_eq!(all(&scene).await, [0, 0, 0], "nothing is counted yet");
    let at_once = || join_all((0..4).map(|_| scene.store.roll_up(Duration::ZERO)));
    let counts = at_once().await;
    assert!(counts.into_iter().any(|counted| counted.unwrap()));
    assert_eq!(all(&scene).await, [3, 1, 2], "also what was before the first rollup");
    live(&scene).await;
    at_once().await;
    at_once().await;
    assert_eq!(all(&scene).await, [6, 2, 4]);
    for range in [Range::Day, Range::Week] {
        let filter = RollupFilter { range, ..RollupFilter::default() };
        assert_eq!(counted(scene.store.as_ref(), filter).await, [6, 2, 4], "{range}");
    }
}

pub async fn counts_are_of_a_queue_and_a_kind(scene: Scene) {
    live(&scene).await;
    assert!(scene.store.roll_up(Duration::ZERO).await.unwrap());
    let of = async |queue: Option<&str>, kind: Option<&str>| {
        let (queue, kind) = (queue.map(str::to_owned), kind.map(str::to_owned));
        counted(
            scene.store.as_ref(),
            RollupFilter { range: Range::Hour, queue, kind, ..RollupFilter::default() },
        )
        .await
    };
    assert_eq!(of(Some("default"), None).await, [3, 1, 2]);
    assert_eq!(of(None, Some(KIND)).await, [3, 1, 2]);
    assert_eq!(of(Some("default"), Some(KIND)).await, [3, 1, 2]);
    assert_eq!(of(Some("other"), None).await, [0, 0, 0]);
    assert_eq!(of(Some("default"), Some("other")).await, [0, 0, 0]);
    let rollups = scene.store.rollups(&RollupFilter::default()).await.unwrap();
    assert!(rollups.counts.iter().all(|count| count.bucket >= 0), "all durations are known: {rollups:?}");
    assert!(rollups.upto_s.is_some_and(|upto_s| upto_s <= rollups.now_s), "{rollups:?}");
}

pub async fn counts_are_of_the_queues_and_kinds_of_a_scope(scene: Scene) {
    live(&scene).await;
    assert!(scene.store.roll_up(Duration::ZERO).await.unwrap());
    let of = async |queues: &[&str], kinds: &[&str]| {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let scope = TokenScope { queues: owned(queues), kinds: owned(kinds) };
        counted(scene.store.as_ref(), RollupFilter { scope, ..RollupFilter::default() }).await
    };
    for (queues, kinds) in [(&["default"][..], &[][..]), (&["other", "def*"], &["te*"]), (&[], &["*"])] {
        assert_eq!(of(queues, kinds).await, [3, 1, 2], "{queues:?} {kinds:?}");
    }
    // Characters that mean something in patterns of databases mean themselves.
    for (queues, kinds) in [
        (&["defaul"][..], &[][..]),
        (&["d_fault"], &[]),
        (&["d%"], &[]),
        (&["d?fault"], &[]),
        (&["[d]efault"], &[]),
        (&["Def*"], &[]),
        (&["default"], &["other"]),
    ] {
        assert_eq!(of(queues, kinds).await, [0, 0, 0], "{queues:?} {kinds:?}");
    }
}

pub async fn a_rollup_waits_until_it_is_due(scene: Scene) {
    assert!(scene.store.roll_up(EVERY).await.unwrap(), "the first one");
    live(&scene).await;
    assert!(!scene.store.roll_up(EVERY).await.unwrap());
    assert_eq!(all(&scene).await, [0, 0, 0]);
    assert!(scene.store.roll_up(Duration::ZERO).await.unwrap());
    assert_eq!(all(&scene).await, [3, 1, 2]);
}

pub async fn the_numbers_of_many_changes_are_exact(scene: Scene) {
    let jobs = SAMPLE_MAX as usize;
    scene.enqueue_many(jobs, KIND, json!(null)).await;
    let mut ran = 0;
    while ran < jobs {
        let runs = scene.claim(500).await;
        ran += runs.len();
        join_all(runs.iter().map(|run| scene.finish(run, End::Succeed { result: None }))).await;
    }
    assert!(scene.store.roll_up(Duration::ZERO).await.unwrap());
    assert_eq!(all(&scene).await, [jobs as u64, jobs as u64, 0]);
}

pub async fn changes_of_deleted_jobs_are_counted_if_their_history_is_left(scene: Scene) {
    live(&scene).await;
    let nothing = RetentionPolicy { succeeded: Keep::For(Duration::ZERO), ..RetentionPolicy::FOREVER };
    while scene.store.prune(&nothing, Pace { limit: 100, rest: 0 }).await.unwrap().more {}
    assert!(scene.store.roll_up(Duration::ZERO).await.unwrap());
    let [started, _, failed] = all(&scene).await;
    assert!(started >= 1 && failed >= 1, "the failed job is left");
}
