//! Tests of the whole example, on both stores and both brokers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use example_orders::{Broker, Report, Shop, run};
use milepost_testkit::database::Database;
use milepost_testkit::nats::NatsServer;

fn check(report: &Report, orders: i64) {
    let books = &report.books;
    assert!(books.balance(), "{books:?}");
    assert_eq!((books.orders.0, books.orders.1), (orders, orders), "all are placed and paid");
    assert_eq!(report.replayed, 2 * orders.unsigned_abs());
    assert_eq!(report.duplicates.len(), 2, "{:?}", report.duplicates);
    assert!(report.duplicates.iter().all(|(_, duplicates)| *duplicates > 0), "{:?}", report.duplicates);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_consumers_do_everything_once_on_sqlite_and_a_file_and_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::open(&format!("sqlite:{}", folder.path().join("orders.db").display())).await.unwrap();
    let broker = Broker::File(folder.path().join("orders.jsonl"));
    check(&run(&shop, &broker).await.unwrap(), 300);
    check(&run(&shop, &broker).await.unwrap(), 600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_consumers_do_everything_once_on_postgres_and_nats_also_what_plain_sql_emits() {
    let database = Database::create().await;
    let nats = NatsServer::running(&[]).await;
    let shop = Shop::open(&database.url()).await.unwrap();
    if let Shop::Postgres(store) = &shop {
        sqlx::raw_sql(include_str!("../orders.sql")).execute(store.pool()).await.unwrap();
    }
    check(&run(&shop, &Broker::Nats(nats.url())).await.unwrap(), 301);
}
