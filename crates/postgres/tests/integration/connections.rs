//! Reuse, replacement and release of the store's connections.

use std::time::Duration;

use milepost_core::pool::PoolView;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;
use milepost_testkit::proxy::Proxy;
use milepost_testkit::{Scene, wait};
use sqlx::Executor;
use sqlx::postgres::PgPoolOptions;

async fn store_of(database: &Database, connections_max: u32) -> PostgresStore {
    let options =
        PostgresOptions { connections_max, acquire_timeout: wait::LIMIT, ..PostgresOptions::default() };
    PostgresStore::connect(&database.url(), options).await.unwrap()
}

fn view(store: &PostgresStore, name: &str) -> PoolView {
    store.pools().into_iter().find(|pool| pool.name == name).unwrap()
}

/// Terminates all other sessions of this database.
async fn end_sessions(database: &Database) {
    let others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    let asking = PgPoolOptions::new().max_connections(1).connect(&database.url()).await.unwrap();
    let end = sqlx::AssertSqlSafe(format!("select pg_terminate_backend(pid) {others}"));
    sqlx::query(end).execute(&asking).await.unwrap();
    wait::until("the other sessions have ended", || async {
        let left =
            sqlx::AssertSqlSafe(format!("select count(*) {others} and backend_type = 'client backend'"));
        sqlx::query_scalar::<_, i64>(left).fetch_one(&asking).await.unwrap() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_that_follow_one_another_share_a_connection() {
    let database = Database::migrated().await;
    let store = store_of(&database, 10).await;
    for _ in 0..20 {
        let made = store.enqueue(&Scene::job()).await.unwrap();
        store.job(made.job).await.unwrap();
    }
    for name in ["callers", "questions"] {
        let pool = view(&store, name);
        assert_eq!((pool.in_use, pool.idle), (0, 1), "{name}: {pool:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_at_the_same_time_share_few_connections_and_none_is_left_waiting() {
    let database = Database::migrated().await;
    let store = store_of(&database, 2).await;
    let mut verbs = tokio::task::JoinSet::new();
    for turn in 0..200 {
        let store = store.clone();
        verbs.spawn(async move {
            let job = Scene::job();
            let enqueue = store.enqueue(&job);
            if turn % 10 == 0 {
                // Cancels the verb.
                let _ = tokio::time::timeout(Duration::from_micros(turn * 10), enqueue).await;
            } else {
                enqueue.await.unwrap();
            }
        });
    }
    tokio::time::timeout(wait::LIMIT, verbs.join_all()).await.expect("all verbs finish");
    wait::until("all connections are returned", || async { view(&store, "callers").in_use == 0 }).await;
    let pool = view(&store, "callers");
    assert!(pool.idle <= 2 && pool.waits > 0, "{pool:?}");
    for half_way in (0..40).map(|step| Duration::from_micros(step * 100)) {
        let _ = tokio::time::timeout(half_way, store.enqueue(&Scene::job())).await;
        store.enqueue(&Scene::job()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_find_all_connections_of_their_pool_beside_questions() {
    let database = Database::migrated().await;
    let store = store_of(&database, 2).await;
    let mut open = Vec::new();
    for _ in 0..view(&store, "questions").max {
        store.check_schema().await.unwrap();
        open.push(store.pool().acquire().await.unwrap());
    }
    drop(open);
    tokio::time::timeout(wait::LIMIT, store.pool().close()).await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_while_it_rested_is_replaced() {
    let database = Database::migrated().await;
    let store = store_of(&database, 2).await;
    store.enqueue(&Scene::job()).await.unwrap();
    end_sessions(&database).await;
    // A connection that was idle for less than a second is used without a ping.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    store.enqueue(&Scene::job()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fell_silent_while_they_rested_make_room_for_others() {
    let database = Database::migrated().await;
    let (proxy, url) = Proxy::for_url(&database.url()).await;
    let options = PostgresOptions {
        connections_max: 2,
        acquire_timeout: Duration::from_secs(1),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    wait::until("both connections are open", || async {
        let (one, other) = (Scene::job(), Scene::job());
        let _ = tokio::join!(store.enqueue(&one), store.enqueue(&other));
        view(&store, "callers").idle == 2
    })
    .await;
    // A connection that was idle for less than a second is used without a ping, and would fail only by the timeout of TCP.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    proxy.fall_silent();
    wait::until("verbs succeed again", || async { store.enqueue(&Scene::job()).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_answer_never_comes_fails_and_its_connection_is_replaced() {
    let database = Database::migrated().await;
    let (proxy, url) = Proxy::for_url(&database.url()).await;
    let options = PostgresOptions {
        connections_max: 1,
        acquire_timeout: wait::LIMIT,
        answer_timeout: Duration::from_secs(1),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    for _ in 0..2 {
        wait::until("a verb succeeds", || async { store.enqueue(&Scene::job()).await.is_ok() }).await;
        // On a connection that was used a moment ago, and is therefore not tested.
        proxy.fall_silent();
        let failed = store.enqueue(&Scene::job()).await.unwrap_err();
        assert!(format!("{failed:?}").contains("did not answer"), "{failed:?}");
    }
    wait::until("a verb succeeds", || async { store.enqueue(&Scene::job()).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_callers_that_were_dropped_on_silent_connections_make_room_for_others() {
    let database = Database::migrated().await;
    let (proxy, url) = Proxy::for_url(&database.url()).await;
    let store = PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..store.pool().options().get_max_connections() {
        let mut transaction = store.pool().begin().await.unwrap();
        transaction.execute("select 1").await.unwrap();
        open.push(transaction);
    }
    proxy.fall_silent();
    drop(open);
    let mut transaction = store.pool().begin().await.unwrap();
    transaction.execute("select 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_connections_at_hand_can_be_closed() {
    let database = Database::migrated().await;
    let store = store_of(&database, 2).await;
    let made = store.enqueue(&Scene::job()).await.unwrap();
    store.job(made.job).await.unwrap();
    tokio::time::timeout(wait::LIMIT, store.close()).await.expect("closed");
    assert!(store.enqueue(&Scene::job()).await.is_err());
}

#[test]
fn a_store_may_outlive_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, store) = runtime.block_on(async {
        let database = Database::migrated().await;
        let store = store_of(&database, 2).await;
        store.enqueue(&Scene::job()).await.unwrap();
        (database, store)
    });
    drop(runtime);
    assert_eq!(view(&store, "callers").idle, 1);
    drop(store);
    drop(database);
}
