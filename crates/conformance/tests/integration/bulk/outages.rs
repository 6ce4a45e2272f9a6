//! Connections and servers that fail during a run (PostgreSQL).

use std::sync::Arc;
use std::time::Duration;

use milepost::bulk::{Bulk, Definition, Load, Sizing};
use milepost::{JobState, NewJob, Worker};
use milepost_core::port::BulkStore;
use milepost_postgres::bulk::{Effect, SqlBulk};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::home::PostgresHome;
use milepost_testkit::notes::{self, APPLY, SOURCE};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::server::Server;
use milepost_testkit::{Scene, database, wait};
use sqlx::Executor;

use crate::bulk::members::Members;

/// Returns a definition with this rate in rows per second, in small chunks.
fn paced(name: &str, rows_per_s: f64) -> Definition {
    Definition {
        sizing: Sizing { rows_min: 10, rows_max: 10, ..Sizing::default() },
        load: Load { rows_per_s: Some(rows_per_s), duty: 1.0 },
        ..notes::definition(name, 10)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_session_is_ended_from_outside_goes_on_by_itself() {
    let members = Members::on(PostgresHome::fresh().await).await;
    // So slow that the run does not end before its session has been terminated this often.
    members.add(0..1_200).await;
    let bulk = members.notify_as(paced("cut", 30.0));
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    for _ in 0..5 {
        let at = members.view(job).await.counts.chunks;
        members.until(job, "the run processes more chunks", |view| view.counts.chunks > at + 1).await;
        let ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                     where application_name = 'milepost bulk cut' and datname = current_database()";
        assert_eq!(members.home.count(ended).await, 1);
    }
    members.hurry(job).await;
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 1_200).await;
    assert_eq!(members.scene.count(job, milepost::Verb::Claim).await, 1, "the run has one attempt");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_network_becomes_silent_goes_on_by_itself() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(0..600).await;
    let (proxy, url) = Proxy::for_url(&members.home.address()).await;
    let answer_timeout = Duration::from_secs(2);
    let options = PostgresOptions { answer_timeout, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    let definition = paced("silent", 30.0);
    let effect = Effect::Sql(APPLY.to_owned());
    let work = SqlBulk::new(&store, &definition, SOURCE, &["id".to_owned()], effect).unwrap();
    let bulk = Bulk::new(definition, Arc::new(work));
    let job = members.start(&bulk).await;
    // A lease that outlasts the silence: otherwise the run continues because another attempt begins.
    let lease = Duration::from_secs(120);
    let worker = Worker::builder(Arc::new(store)).bulk(bulk).options(|its| its.lease = lease);
    let worker = worker.start().await.unwrap();
    members.until(job, "the run processes chunks", |view| view.counts.chunks > 1).await;
    proxy.fall_silent();
    let at = members.view(job).await.counts.chunks;
    members.until(job, "the run processes more chunks", |view| view.counts.chunks > at + 1).await;
    members.hurry(job).await;
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 600).await;
    assert_eq!(members.scene.count(job, milepost::Verb::Claim).await, 1, "the run has one attempt");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_by_itself_when_the_server_has_crashed_and_is_back() {
    let server = Server::create().await;
    let store = database::open(&server.url()).await;
    store
        .pool()
        .execute(
            "create table member (id bigint primary key, place text, name text);
             create table note (run text, member bigint); insert into member select n, 'x', 'x' from generate_series(1, 1500) n",
        )
        .await
        .unwrap();
    let definition = paced("crash", 400.0);
    let work =
        SqlBulk::new(&store, &definition, SOURCE, &["id".to_owned()], Effect::Sql(APPLY.to_owned())).unwrap();
    let bulk = Bulk::new(definition.clone(), Arc::new(work));
    let job = definition.direct(NewJob::new("", &serde_json::json!({})).unwrap());
    let job = store.start_bulk(&job).await.unwrap().job;
    let lease = Duration::from_secs(15);
    let worker = Worker::builder(Arc::new(store.clone())).bulk(bulk).options(|its| its.lease = lease);
    let worker = worker.start().await.unwrap();
    let scene = Scene::on(Arc::new(store.clone())).await;
    let notes = async || -> i64 {
        sqlx::query_scalar("select count(*) from note").fetch_one(store.pool()).await.unwrap_or(0)
    };
    for crash in 1..=2 {
        wait::until("the run processes chunks", || async { notes().await > crash * 300 }).await;
        server.crash().await;
        server.start().await;
    }
    scene.until(job, JobState::Succeeded).await;
    let [all, distinct]: [i64; 2] = {
        let row: (i64, i64) = sqlx::query_as("select count(*), count(distinct member) from note")
            .fetch_one(store.pool())
            .await
            .unwrap();
        [row.0, row.1]
    };
    assert_eq!((all, distinct), (1_500, 1_500));
    worker.shutdown().await;
}
