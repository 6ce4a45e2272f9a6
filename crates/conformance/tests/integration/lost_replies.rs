//! Workers behind a network that loses the server's replies after the server has executed the request.

use std::sync::Arc;
use std::time::Duration;

use milepost::Outcome;
use milepost_conformance::runtime;
use milepost_core::job::NewJob;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::database::{self, Database};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::{Scene, wait};
use serde_json::json;
use tokio::sync::Semaphore;

struct Stage {
    _database: Database,
    proxy: Proxy,
    /// Does not use the proxy.
    scene: Scene,
    worker: milepost::Worker,
    gate: Arc<Semaphore>,
}

/// Starts a worker behind the proxy, with a lease of one minute. Its jobs wait for a permit of the gate.
async fn set() -> Stage {
    let (database, store) = Database::with_store().await;
    let (proxy, url) = Proxy::for_url(&database.url()).await;
    let gate = Arc::new(Semaphore::new(0));
    let of_handler = gate.clone();
    let worker = runtime::start(Arc::new(database::open(&url).await), move |_| {
        let gate = of_handler.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(Outcome::Done)
        }
    })
    .await;
    let scene = Scene::on(Arc::new(store)).await;
    Stage { _database: database, proxy, scene, worker, gate }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_claim_got_no_reply_is_adopted_long_before_its_lease_runs_out() {
    let stage = set().await;
    stage.gate.add_permits(1);
    stage.proxy.lose_reply_with(b"this payload never arrives");
    let payload = json!({ "text": "this payload never arrives" });
    let job = stage.scene.enqueue(NewJob::new(runtime::KIND, &payload).unwrap()).await;
    stage.scene.until(job, JobState::Succeeded).await;
    assert!(stage.proxy.has_lost_it());
    assert_eq!(stage.worker.stats().adopted, 1);
    assert_eq!(
        stage.scene.count(job, Verb::Claim).await,
        1,
        "the job was not rescued after its lease expired"
    );
    stage.scene.assert_all_succeed(&[job]).await;
    stage.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_got_no_reply_is_told_again_and_stands_once() {
    let stage = set().await;
    let job = stage.scene.enqueue(runtime::job()).await;
    wait::until("the job is running", || async { stage.worker.stats().claimed == 1 }).await;
    // The answer to the end of the job contains its id.
    stage.proxy.lose_reply_with(job.0.as_bytes());
    stage.gate.add_permits(1);
    wait::until("the end was reported again", || async { stage.worker.stats().repeated == 1 }).await;
    assert!(stage.proxy.has_lost_it());
    assert_eq!(stage.worker.stats().succeeded, 0);
    stage.scene.assert_all_succeed(&[job]).await;
    stage.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_cut_off_goes_on_by_itself() {
    let stage = set().await;
    let mut jobs = Vec::new();
    for round in 0..3 {
        stage.proxy.lose_replies(true);
        jobs.push(stage.scene.enqueue(runtime::job()).await);
        tokio::time::sleep(Duration::from_millis(300 * round)).await;
        stage.proxy.lose_replies(false);
        jobs.push(stage.scene.enqueue(runtime::job()).await);
        stage.gate.add_permits(2);
        stage.scene.assert_all_succeed(&jobs).await;
    }
    for job in jobs {
        assert_eq!(
            stage.scene.count(job, Verb::Claim).await,
            1,
            "the job was not rescued after its lease expired"
        );
    }
    stage.worker.shutdown().await;
}
