//! State change events after their jobs and batches have been deleted, on both stores.

use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::batches::{Batches, done, graph};
use milepost_conformance::changes::{want, want_kinds};
use milepost_core::event::Changes;
use milepost_core::finish::End;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use milepost_testkit::Scene;
use milepost_testkit::examine::examine;
use milepost_testkit::home::Home;
use milepost_testkit::scene::KIND;
use serde_json::json;

async fn home(home: impl Home + 'static) -> Arc<dyn Home> {
    Arc::new(home)
}

milepost_testkit::on_each_home! { super::home =>
    heads_of_jobs_go_with_them_and_no_others,
    heads_of_batches_and_their_tasks_go_with_them,
}

async fn heads(home: &dyn Home) -> i64 {
    home.count("select count(*) from milepost.aggregate").await
}

/// Deletes all finished jobs.
async fn forget(scene: &Scene) {
    let now = Keep::For(Duration::ZERO);
    let policy = RetentionPolicy { succeeded: now, canceled: now, failed: now, ..RetentionPolicy::FOREVER };
    // What ended in the current millisecond is due in the next one, and a store may keep the last entry of the history.
    scene.enqueue_many(1, "bystander", json!({})).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    while scene.store.prune(&policy, Pace { limit: 100, rest: 0 }).await.unwrap().more {}
}

async fn heads_of_jobs_go_with_them_and_no_others(home: Arc<dyn Home>) {
    let scene = Scene::on(home.store()).await;
    want_kinds(&scene.store, "audit", &[KIND]).await;
    for _ in 0..3 {
        let job = scene.running(Scene::job()).await;
        scene.finish(&job, End::Succeed { result: None }).await;
    }
    let stays = scene.enqueue(Scene::job()).await;
    assert_eq!(heads(home.as_ref()).await, 4);
    forget(&scene).await;
    assert_eq!(heads(home.as_ref()).await, 1);
    let head =
        format!("select count(*) from milepost.aggregate where aggregate_id = '{stays}' and last_seq = 1");
    assert_eq!(home.count(&head).await, 1);
    assert_eq!(
        home.count("select count(*) from milepost.event").await,
        10,
        "events are kept independently of the jobs"
    );
    assert_eq!(examine(&scene.store).await, []);
}

async fn heads_of_batches_and_their_tasks_go_with_them(home: Arc<dyn Home>) {
    let batches = Batches::on(home.store()).await;
    let changes = Changes { kinds: vec![KIND.to_owned()], dags: vec!["close".to_owned()] };
    want(&batches.store, "audit", changes).await;
    let batch = batches.run(graph("close", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    batches.step(batch, &["a"], done()).await;
    batches.step(batch, &["b"], done()).await;
    assert_eq!(heads(home.as_ref()).await, 3);
    tokio::time::sleep(Duration::from_millis(3)).await;
    while batches.store.prune_batches(Duration::ZERO).await.unwrap() > 0 {}
    forget(&batches.scene).await;
    assert_eq!(heads(home.as_ref()).await, 0);
    assert_eq!(home.count("select count(*) from milepost.event").await, 8);
    assert_eq!(examine(&batches.store).await, []);
}
