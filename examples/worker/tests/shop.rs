//! Tests from enqueueing a job to its effect, on both stores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use example_worker::{ConfirmOrder, Shop, worker};
use milepost::{Job, JobState, Verb, testing};
use milepost_sqlite::SqliteStore;
use milepost_testkit::database::Database;

async fn an_order_is_confirmed_once(shop: Shop) {
    let store = shop.store();
    for order in [7, 7, 8] {
        let confirm = ConfirmOrder { order }.to_job().unwrap().key(order.to_string());
        store.enqueue(&confirm).await.unwrap();
    }
    let waiting = testing::waiting::<ConfirmOrder>(&*store).await.unwrap();
    let orders: Vec<i64> = waiting.iter().map(|(_, confirm)| confirm.order).collect();
    assert_eq!(orders, [7, 8], "the second order 7 is the first one again");

    assert_eq!(worker(&shop).drain().await.unwrap().succeeded, 2);
    assert_eq!(shop.confirmed().await.unwrap(), 2);
    let job = waiting[0].0.row.id;
    assert_eq!(store.job(job).await.unwrap().unwrap().row.state, JobState::Succeeded);
}

async fn a_confirmation_that_cannot_be_written_leaves_its_job(shop: Shop) {
    let store = shop.store();
    let jobs = [(); 2].map(|()| ConfirmOrder { order: 7 }.to_job().unwrap());
    store.enqueue_many(&jobs).await.unwrap();
    let done = worker(&shop).drain().await.unwrap();
    assert_eq!((done.succeeded, done.retried), (1, 1), "an order has one confirmation");
    assert_eq!(shop.confirmed().await.unwrap(), 1);
    let waiting = testing::waiting::<ConfirmOrder>(&*store).await.unwrap();
    assert_eq!(waiting[0].0.row.state, JobState::RetryWait);
    let last = store.complete_history(waiting[0].0.row.id).await.unwrap().pop().unwrap();
    assert_eq!((last.verb, last.error_code.as_deref()), (Verb::Retry, Some("error")));
}

mod on_sqlite {
    use super::*;

    async fn shop() -> Shop {
        Shop::on_sqlite(SqliteStore::temporary().await.unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn an_order_is_confirmed_once() {
        super::an_order_is_confirmed_once(shop().await).await;
    }

    #[tokio::test]
    async fn a_confirmation_that_cannot_be_written_leaves_its_job() {
        super::a_confirmation_that_cannot_be_written_leaves_its_job(shop().await).await;
    }
}

mod on_postgres {
    use super::*;

    #[tokio::test]
    async fn an_order_is_confirmed_once() {
        let (_database, store) = Database::with_store().await;
        super::an_order_is_confirmed_once(Shop::on_postgres(store).await.unwrap()).await;
    }

    #[tokio::test]
    async fn a_confirmation_that_cannot_be_written_leaves_its_job() {
        let (_database, store) = Database::with_store().await;
        let shop = Shop::on_postgres(store).await.unwrap();
        super::a_confirmation_that_cannot_be_written_leaves_its_job(shop).await;
    }
}
