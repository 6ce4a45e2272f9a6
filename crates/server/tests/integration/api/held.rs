//! Single creates beside a transaction that holds a key.

use std::sync::Arc;
use std::time::Duration;

use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

use crate::api::place::{self, Place};

/// More than there are shared transactions at a time.
const HELD: usize = 6;
/// Less than the transaction that holds the key stays open.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_whose_key_is_held_by_an_open_transaction_stop_no_others() {
    let (database, store) = place::on_postgres().await;
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin; select milepost.enqueue('mail', key => 'held')").await.unwrap();
    let place = Arc::new(Place::serve(store).await);
    let held: Vec<_> = (0..HELD)
        .map(|_| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.post("/v1/jobs", &json!({"kind": "mail", "key": "held"})).await })
        })
        .collect();
    let mut watcher = PgConnection::connect(&database.url()).await.unwrap();
    wait::until("a create waits for the key", || async { waiting(&database.url()).await > 0 }).await;
    for body in [json!({"kind": "other"}), json!({"kind": "mail", "key": "free"})] {
        for _ in 0..5 {
            let created = tokio::time::timeout(SOON, place.post("/v1/jobs", &body)).await;
            assert!(created.expect("it does not wait").status.is_success(), "{body}");
        }
    }
    assert!(held.iter().all(|held| !held.is_finished()), "their key is still held");
    holder.execute("commit").await.unwrap();
    for held in held {
        let answer = held.await.unwrap();
        assert_eq!((answer.status, &answer.body["duplicate"]), (StatusCode::OK, &json!(true)));
    }
    let jobs: i64 = sqlx::query_scalar("select count(*) from milepost.job where key = 'held'")
        .fetch_one(&mut watcher)
        .await
        .unwrap();
    assert_eq!(jobs, 1);
}

/// Returns how many sessions of the database wait for a lock.
async fn waiting(url: &str) -> i64 {
    let mut watcher = PgConnection::connect(url).await.unwrap();
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    sqlx::query_scalar(waiting).fetch_one(&mut watcher).await.unwrap()
}
