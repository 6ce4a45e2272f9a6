//! Requests beside an open transaction that holds what some of them need.

use std::sync::Arc;
use std::time::Duration;

use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

use crate::api::place::{self, Place};

/// More than there are shared transactions at a time.
const HELD: usize = 60;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_job_among_many_that_are_created_separately_delays_only_its_own_result() {
    let (database, store) = place::on_postgres().await;
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin; select milepost.enqueue('mail', key => 'held')").await.unwrap();
    let place = Arc::new(Place::serve(store).await);
    let mut jobs = vec![json!({"kind": "mail"}); 5];
    jobs.insert(2, json!({"kind": "mail", "key": "held"}));
    let (asking, body) = (Arc::clone(&place), json!({"jobs": jobs}));
    let created = tokio::spawn(async move { asking.post("/v1/jobs/create-many?each=true", &body).await });
    wait::until("the others are stored", || async { stored(&database.url()).await == 5 }).await;
    assert!(!created.is_finished(), "its key is still held");
    holder.execute("commit").await.unwrap();
    let answer = created.await.unwrap();
    let duplicates: Vec<bool> =
        answer.body["jobs"].as_array().unwrap().iter().map(|job| job["duplicate"] == json!(true)).collect();
    assert_eq!(duplicates, [false, false, true, false, false, false]);
}

/// Returns how many jobs are stored.
async fn stored(url: &str) -> i64 {
    let mut watcher = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar("select count(*) from milepost.job").fetch_one(&mut watcher).await.unwrap()
}

/// Returns how many sessions of the database wait for a lock.
async fn waiting(url: &str) -> i64 {
    let mut watcher = PgConnection::connect(url).await.unwrap();
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    sqlx::query_scalar(waiting).fetch_one(&mut watcher).await.unwrap()
}

/// More than the server has connections for these requests.
const MANY: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_an_open_transaction_holds_keep_no_connections() {
    let (database, store) = place::on_postgres().await;
    let place = Arc::new(Place::serve(store).await);
    place.ask(Method::POST, "/v1/dags", json!({"name": "d", "tasks": {"a": {"kind": "k"}}})).await;
    let job = place.created(&json!({"kind": "mail"})).await;
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    let hold = "begin; select milepost.enqueue('mail', key => 'held'); select milepost.emit('order', 'held', 'paid');
                select milepost.start_batch('d', key => 'held')";
    holder.execute(hold).await.unwrap();
    sqlx::query("select milepost.cancel($1::uuid)").bind(&job).execute(&mut holder).await.unwrap();
    let requests = [
        (
            "/v1/jobs/create-many".to_owned(),
            json!({"jobs": [{"kind": "mail", "key": "held"}, {"kind": "mail"}]}),
        ),
        (
            "/v1/events".to_owned(),
            json!({"events": [{"aggregate_type": "order", "aggregate_id": "held", "event_type": "sent"}]}),
        ),
        ("/v1/batches".to_owned(), json!({"dag": "d", "key": "held"})),
        (format!("/v1/jobs/{job}/operate"), json!({"operation": "abort"})),
    ];
    let held: Vec<_> = (0..MANY)
        .map(|at| {
            let (place, (path, body)) = (Arc::clone(&place), requests[at % requests.len()].clone());
            tokio::spawn(async move { place.post(&path, &body).await })
        })
        .collect();
    wait::until("a request waits", || async { waiting(&database.url()).await > 0 }).await;
    for at in 0..10 {
        let free = format!("free {at}");
        for (path, body) in [
            ("/v1/jobs", json!({"kind": "mail", "key": free})),
            ("/v1/jobs/create-many", json!({"jobs": [{"kind": "mail"}]})),
            (
                "/v1/events",
                json!({"events": [{"aggregate_type": "order", "aggregate_id": free, "event_type": "sent"}]}),
            ),
            ("/v1/batches", json!({"dag": "d", "key": free})),
        ] {
            let answer = tokio::time::timeout(SOON, place.post(path, &body)).await.expect("it does not wait");
            assert!(answer.status.is_success(), "{path}: {answer:?}");
        }
    }
    assert!(held.iter().all(|held| !held.is_finished()), "what they need is still held");
    holder.execute("rollback").await.unwrap();
    for held in held {
        let answer = held.await.unwrap();
        // The first abort succeeds, the others find an aborted job.
        assert!(answer.status.is_success() || answer.code() == "illegal_transition", "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_an_open_transaction_holds_is_answered_beside_the_others() {
    let (database, store) = place::on_postgres().await;
    let place = Place::serve(store).await;
    for _ in 0..3 {
        place.created(&json!({"kind": "k"})).await;
    }
    let worker = json!({"name": "w", "queues": ["default"], "kinds": ["k"], "lease_ms": 60_000});
    let worker = place.post("/v1/workers", &worker).await.body["id"].clone();
    let claim = json!({"queues": ["default"], "kinds": ["k"], "limit": 3, "wait_ms": 20_000});
    let claimed = place.post(&format!("/v1/workers/{worker}/claim"), &claim).await;
    let jobs = claimed.body["jobs"].as_array().unwrap();
    let ends: Vec<_> = jobs.iter().map(|job| json!({"run": job["run"], "outcome": "succeeded"})).collect();
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin").await.unwrap();
    let held = jobs[1]["id"].as_str().unwrap();
    sqlx::query("select milepost.cancel($1::uuid)").bind(held).execute(&mut holder).await.unwrap();
    let finish = format!("/v1/workers/{worker}/finish");
    let finished = place.post(&finish, &json!({"runs": ends})).await;
    assert_eq!(finished.body["runs"], json!(["accepted", "held", "accepted"]));
    let again = place.post(&finish, &json!({"runs": [ends[1]]})).await;
    assert_eq!(again.body["runs"], json!(["held"]));
    holder.execute("commit").await.unwrap();
    let finished = place.post(&finish, &json!({"runs": ends})).await;
    assert_eq!(
        finished.body["runs"],
        json!(["repeated", "accepted", "repeated"]),
        "a success counts, although a cancel was requested"
    );
}
