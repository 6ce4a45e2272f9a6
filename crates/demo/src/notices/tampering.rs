//! Tests that the checks detect manipulated notices.

use std::sync::Arc;

use milepost::{JobId, JobState, Worker};
use milepost_cli_support::store::StoreAddress;
use milepost_testkit::database::Database;

use super::channels::{self, Channel, Channels, NoticeFacts};
use super::{CENTRE, Notice, World, bulk, on_sphere, queue};
use crate::ledger::{self, Scope};

const WORLD: World = World(60);
/// The number of channels near the centre; they are the first ones.
const NEAR: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_and_a_doubled_notice_are_found_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.db");
    let (channels, job) = notify(&StoreAddress::Sqlite(path.clone())).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    let one = format!("from milepost_demo_notice where run = '{job}' and channel = 1");
    assert_eq!(facts(&channels, job).await, (NEAR, 0, 0));
    file.execute_batch(&format!("insert into milepost_demo_notice select run, channel {one}")).unwrap();
    assert_eq!(facts(&channels, job).await, (NEAR + 1, 0, 1));
    file.execute_batch(&format!("delete {one}")).unwrap();
    assert_eq!(facts(&channels, job).await, (NEAR - 1, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_and_a_doubled_notice_are_found_on_postgres() {
    let database = Database::create().await;
    let (channels, job) = notify(&StoreAddress::Postgres(database.url())).await;
    let pool = sqlx::PgPool::connect(&database.url()).await.unwrap();
    let tamper = async |sql: String| sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    let one = format!("from milepost_demo_notice where run = '{job}' and channel = 1");
    assert_eq!(facts(&channels, job).await, (NEAR, 0, 0));
    tamper(format!("insert into milepost_demo_notice select run, channel {one}")).await;
    assert_eq!(facts(&channels, job).await, (NEAR + 1, 0, 1));
    tamper(format!("delete {one}")).await;
    assert_eq!(facts(&channels, job).await, (NEAR - 1, 1, 0));
}

/// Returns the numbers of notices, missing notices and duplicates of the nearby channels.
async fn facts(channels: &Arc<dyn Channels>, job: JobId) -> (u64, u64, u64) {
    let NoticeFacts { targets, notices, missing, doubled } =
        channels.facts(Notice::Nearby, job, WORLD).await.unwrap();
    assert_eq!(targets, NEAR);
    (notices, missing, doubled)
}

/// Runs a small demo without worker processes.
async fn notify(address: &StoreAddress) -> (Arc<dyn Channels>, JobId) {
    ledger::open(address).await.unwrap().lay(address).await.unwrap();
    let channels = channels::open(address).await.unwrap();
    assert_eq!(channels.lay(WORLD).await.unwrap(), 0);
    let (near, far) = (on_sphere(CENTRE.0, CENTRE.1), on_sphere(-CENTRE.0, -CENTRE.1));
    let channel = |id| Channel { id, point: if id <= NEAR { near } else { far } };
    channels.add(WORLD, (1..=WORLD.0).map(channel).collect()).await.unwrap();
    assert_eq!(channels.lay(WORLD).await.unwrap(), WORLD.0);
    let (store, scope) = (channels.store(), Scope::new());
    let job = store.start_bulk(&Notice::Nearby.job(&scope, WORLD).unwrap()).await.unwrap().job;
    let worker = Worker::builder(store.clone()).queues([queue(&scope)]);
    worker.bulk(bulk(channels.as_ref(), Notice::Nearby, &scope, WORLD).unwrap()).drain().await.unwrap();
    assert_eq!(store.job(job).await.unwrap().unwrap().row.state, JobState::Succeeded);
    (channels, job)
}
