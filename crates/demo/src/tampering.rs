//! Tests that manipulated notifications make the demo's checks fail.

use std::sync::Arc;
use std::time::Duration;

use milepost::{ClaimedJob, Job, NewJob};
use milepost_cli_support::store::StoreAddress;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::worker::NewWorker;
use milepost_testkit::database::Database;

use super::ledger::{self, Ledger, Notification, Scope};
use super::places::{self, Place};
use super::plan::Plan;
use super::show::Seen;
use super::verify::verify;

const PLAN: Plan = Plan { places: 60 };

const LOSE_ONE: &str = "delete from milepost_demo_notification where place_id = 1";
const DOUBLE_ONE: &str = "insert into milepost_demo_notification (run, place_id, job_id, attempt) \
                          select run, place_id, job_id, attempt from milepost_demo_notification where place_id = 2";
const LOSE_AN_END: &str = "delete from milepost.ended where id = \
                           (select job_id from milepost_demo_notification where place_id = 3)";

#[tokio::test]
async fn a_missing_and_a_doubled_row_are_found_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.db");
    let address = StoreAddress::Sqlite(path.clone());
    let (ledger, scope) = perform(&address).await;
    assert_eq!(failed_checks(&ledger, &scope).await, NOTHING_WAS_KILLED);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(LOSE_ONE).unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await, AFTER_A_LOSS);
    db.execute_batch(DOUBLE_ONE).unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await, AFTER_BOTH);
    db.execute_batch(&LOSE_AN_END.replace("milepost.", "milepost_")).unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await[0], "not ended");
}

#[tokio::test]
async fn a_missing_and_a_doubled_row_are_found_on_postgres() {
    let database = Database::create().await;
    let (ledger, scope) = perform(&StoreAddress::Postgres(database.url())).await;
    assert_eq!(failed_checks(&ledger, &scope).await, NOTHING_WAS_KILLED);
    let pool = sqlx::PgPool::connect(&database.url()).await.unwrap();
    sqlx::raw_sql(LOSE_ONE).execute(&pool).await.unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await, AFTER_A_LOSS);
    sqlx::raw_sql(DOUBLE_ONE).execute(&pool).await.unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await, AFTER_BOTH);
    sqlx::query(LOSE_AN_END).execute(&pool).await.unwrap();
    assert_eq!(failed_checks(&ledger, &scope).await[0], "not ended");
}

/// The tests kill no worker, so these checks fail as well.
const NOTHING_WAS_KILLED: [&str; 2] = ["held at the kill", "taken back"];
const AFTER_A_LOSS: [&str; 4] = ["notifications", "  missing", "held at the kill", "taken back"];
/// The number of rows is as expected, but their content is wrong.
const AFTER_BOTH: [&str; 4] = ["  missing", "  doubled", "held at the kill", "taken back"];

async fn failed_checks(ledger: &Arc<dyn Ledger>, scope: &Scope) -> Vec<&'static str> {
    let facts = ledger.facts(scope).await.unwrap();
    let checks = verify(PLAN, &facts, &Seen::default());
    checks.iter().filter(|check| !check.passed).map(|check| check.what).collect()
}

/// Runs a small demo without worker processes.
async fn perform(address: &StoreAddress) -> (Arc<dyn Ledger>, Scope) {
    let (ledger, scope) = (ledger::open(address).await.unwrap(), Scope::new());
    ledger.lay(address).await.unwrap();
    let jobs: Vec<NewJob> =
        places::all().take(PLAN.places as usize).map(|place| job(&scope, &place.unwrap())).collect();
    ledger.store().enqueue_many(&jobs).await.unwrap();
    let worker = NewWorker {
        name: "tester".to_owned(),
        queues: vec![scope.queue.clone()],
        kinds: vec![Place::KIND.to_owned()],
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    };
    let worker = ledger.store().register_worker(&worker).await.unwrap();
    let claim = Claim {
        worker,
        claim_id: 1,
        queues: vec![scope.queue.clone()],
        kinds: vec![Place::KIND.to_owned()],
        limit: PLAN.places,
        thorough: false,
    };
    for job in ledger.store().claim(&claim).await.unwrap() {
        if let Err(end) = work(&ledger, &scope, &job).await {
            let finish = Finish { run: job.run, end, grouped: false, task: false };
            ledger.store().finish_many(worker, &[finish]).await.unwrap();
        }
    }
    (ledger, scope)
}

fn job(scope: &Scope, place: &Place) -> NewJob {
    place.to_job().unwrap().queue(&scope.queue).key(scope.key(place.id))
}

async fn work(ledger: &Arc<dyn Ledger>, scope: &Scope, job: &ClaimedJob) -> Result<(), End> {
    let place: Place = serde_json::from_str(&job.payload).unwrap();
    PLAN.trouble(&place, job.attempt)
        .map_err(|error| End::Fail { failure: Failure { code: error.code, message: error.message } })?;
    let notification =
        Notification { queue: scope.queue.as_str().into(), place: place.id, attempt: job.attempt };
    ledger.notify(job.run, notification).await.unwrap();
    Ok(())
}
