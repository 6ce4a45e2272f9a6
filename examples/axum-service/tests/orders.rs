//! Tests of orders over HTTP, with a real server and a real database.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use example_axum_service::{Placed, Standing, prepare, service};
use example_worker::{ConfirmOrder, Shop, worker};
use milepost::{JobId, JobState, testing};
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The service on a free port, with a dedicated database.
struct Service {
    url: String,
    client: Client,
    store: PostgresStore,
    _database: Database,
}

impl Service {
    async fn start() -> Self {
        // The HTTP client requires a TLS provider, although no test uses TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (database, store) = Database::with_store().await;
        prepare(&store).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, service(store.clone())).into_future());
        Self { url, client: Client::new(), store, _database: database }
    }

    async fn order(&self, item: &str, pieces: i32) -> Response {
        let order = json!({ "item": item, "pieces": pieces });
        self.client.post(format!("{}/orders", self.url)).json(&order).send().await.unwrap()
    }

    async fn job(&self, job: &str) -> Response {
        self.client.get(format!("{}/jobs/{job}", self.url)).send().await.unwrap()
    }

    async fn state(&self, job: JobId) -> JobState {
        self.job(&job.to_string()).await.json::<Standing>().await.unwrap().state
    }

    async fn orders(&self) -> i64 {
        sqlx::query_scalar("select count(*) from orders").fetch_one(self.store.pool()).await.unwrap()
    }

    /// Returns the orders whose confirmation is pending.
    async fn waiting(&self) -> Vec<i64> {
        let waiting = testing::waiting::<ConfirmOrder>(&self.store).await.unwrap();
        waiting.into_iter().map(|(_, confirm)| confirm.order).collect()
    }
}

#[tokio::test]
async fn an_order_and_its_job_are_one_commit_and_the_worker_runs_it() {
    let service = Service::start().await;
    let answer = service.order("milestone", 3).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let placed: Placed = answer.json().await.unwrap();
    assert_eq!((service.orders().await, service.waiting().await), (1, vec![placed.order]));
    assert_eq!(service.state(placed.job).await, JobState::Pending);

    let shop = Shop::on_postgres(service.store.clone()).await.unwrap();
    assert_eq!(worker(&shop).drain().await.unwrap().succeeded, 1);
    assert_eq!(service.state(placed.job).await, JobState::Succeeded);
    assert_eq!(shop.confirmed().await.unwrap(), 1);
}

#[tokio::test]
async fn an_order_that_fails_leaves_neither_itself_nor_a_job() {
    let service = Service::start().await;
    for (item, pieces, status) in [
        ("milestone", 11, StatusCode::CONFLICT),
        ("milestone", 0, StatusCode::UNPROCESSABLE_ENTITY),
        ("unicorn", 1, StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let answer = service.order(item, pieces).await;
        assert_eq!(answer.status(), status, "{pieces} {item}");
        let told: Value = answer.json().await.unwrap();
        assert!(told["error"].is_string(), "{told}");
        assert_eq!((service.orders().await, service.waiting().await), (0, vec![]), "{pieces} {item}");
    }
}

#[tokio::test]
async fn a_job_that_nobody_knows_is_not_found() {
    let service = Service::start().await;
    assert_eq!(service.job(&JobId::new().to_string()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.job("seven").await.status(), StatusCode::BAD_REQUEST);
}
