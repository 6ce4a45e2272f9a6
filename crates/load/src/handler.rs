//! The service that runs the jobs: workers call it over HTTP, and it remembers each call.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use tokio::net::TcpListener;

use crate::plan::Plan;

/// The attempts for which the handler was called, by the id of the job.
pub type Calls = HashMap<String, Vec<u32>>;

/// A running service. It ends with the program.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Its address.
    pub address: SocketAddr,
    calls: Arc<Mutex<Calls>>,
}

impl Handler {
    /// Starts the service on a free port.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let handler = Self { address: listener.local_addr()?, calls: Arc::default() };
        let routes = Router::new().route("/run", post(run)).with_state(handler.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(handler)
    }

    /// Returns all calls so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn run(State(handler): State<Handler>, headers: HeaderMap, Json(plan): Json<Plan>) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Ok(attempt) = header("milepost-attempt").parse() else { return StatusCode::BAD_REQUEST };
    let job = header("milepost-job-id").to_owned();
    handler.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(job).or_default().push(attempt);
    tokio::time::sleep(Duration::from_millis(plan.hold_ms)).await;
    if attempt <= plan.failures {
        StatusCode::SERVICE_UNAVAILABLE
    } else if plan.refused {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    }
}
