//! Bulk jobs in flight, which have no findings.

use std::time::Duration;

use milepost::Worker;
use milepost::bulk::{BulkFilter, Definition, Load, Settings, Sizing};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::examine::examine;
use milepost_testkit::{Scene, wait};

use crate::doctor::homes;

const SOURCE: &str = "select id from member where id > :cursor order by id limit :limit";

/// Asserts that examinations have no findings until, and after, the job is in this state.
async fn examine_until(scene: &Scene, job: JobId, state: JobState) {
    loop {
        let arrived = scene.state(job).await == state;
        assert_eq!(examine(&scene.store).await, []);
        if arrived {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_job_in_flight_is_no_finding_nor_is_one_that_tries_its_failures_again() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        home.tamper(
            "create table public.member (id bigint primary key);
             create table public.note (member bigint, check (member % 10 <> 3));
             insert into public.member (id)
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) select i from n",
        )
        .await;
        let definition = Definition {
            sizing: Sizing { target: Duration::from_millis(20), rows_min: 10, rows_max: 20 },
            // So slow that the run does not end before it is aborted.
            load: Load { rows_per_s: Some(50.0), ..Load::default() },
            failures_max: 1000,
            ..Definition::new("notify")
        };
        let apply = "insert into note (member) select id from chunk";
        let bulk = home.bulk(definition.clone(), SOURCE, &["id"], apply).unwrap();
        let worker = Worker::builder(home.store()).bulk(bulk).start().await.unwrap();
        let job = definition.direct(NewJob::new("notify", &serde_json::json!({})).unwrap());
        let first = scene.store.start_bulk(&job).await.unwrap().job;
        wait::until("a chunk is done", || async {
            let runs = scene.store.bulks(&BulkFilter::default()).await.unwrap();
            runs[0].counts.chunks > 0
        })
        .await;
        scene.operate(first, Operation::new(Verb::Abort)).await.unwrap();
        examine_until(&scene, first, JobState::Aborted).await;
        let faster = Settings { rows_per_s: Some(1e6), ..Settings::default() };
        scene.store.set_bulk(first, &faster.into()).await.unwrap();
        scene.operate(first, Operation::new(Verb::Resume)).await.unwrap();
        examine_until(&scene, first, JobState::Succeeded).await;
        let again = scene.store.retry_bulk_failures(first).await.unwrap().job;
        examine_until(&scene, again, JobState::Succeeded).await;
        worker.shutdown().await;
        let runs = scene.store.bulks(&BulkFilter::default()).await.unwrap();
        let counts: Vec<_> = runs.iter().map(|run| (run.counts.done, run.counts.failed)).collect();
        assert_eq!(counts, [(0, 200), (1800, 200)]);
    }
}
