//! The parts of Milepost's HTTP API that a run uses.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::plan::Plan;

/// The time limit of a request: longer than that of the server.
const REQUEST_MAX: Duration = Duration::from_secs(100);
/// The maximum number of rows of a page.
const ROWS_MAX: u32 = 1_000;

/// A client of a server. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Api {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The answer to a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The job was created, or existed under its key.
    Created {
        /// Its id.
        id: String,
        /// Whether it existed.
        duplicate: bool,
    },
    /// The request was refused; repeating it would not help.
    Refused(String),
    /// There was no answer, or one after which the request is to be repeated.
    Failed,
}

/// A job in a list.
#[derive(Clone, Debug, Deserialize)]
pub struct JobRow {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: String,
    /// The number of its attempts.
    pub attempt: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// An attempt of a job.
#[derive(Clone, Debug, Deserialize)]
pub struct Attempt {
    /// Its number.
    pub attempt: u32,
    /// The worker that ran it.
    pub worker: Option<i64>,
    /// When it began.
    pub started_at: Timestamp,
    /// The error code of its failure.
    pub error_code: Option<String>,
}

/// A worker.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerRow {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<JobRow>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Created {
    id: String,
    duplicate: bool,
}

#[derive(Deserialize)]
struct Examination {
    findings: Vec<Value>,
    unanswered: Vec<Value>,
}

impl Api {
    /// Returns a client of the server at this address.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { address, client: Client::builder(TokioExecutor::new()).build(connector) }
    }

    /// Creates a job of the kind `load` with this key, in the job or in the header `Idempotency-Key`.
    pub async fn create(&self, plan: &Plan, key: &str, key_in_header: bool) -> Answer {
        let mut job = json!({"kind": "load", "payload": plan, "max_attempts": plan.max_attempts});
        if !key_in_header {
            job["key"] = key.into();
        }
        let answer = self.ask(Method::POST, "/v1/jobs", Some(&job), key_in_header.then_some(key)).await;
        let Ok((status, body)) = answer else { return Answer::Failed };
        match (status, serde_json::from_slice::<Created>(&body)) {
            (StatusCode::CREATED | StatusCode::OK, Ok(Created { id, duplicate })) => {
                Answer::Created { id, duplicate }
            }
            (status, _) if status.is_server_error() => Answer::Failed,
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => Answer::Failed,
            (status, _) => Answer::Refused(format!("{status}: {}", String::from_utf8_lossy(&body))),
        }
    }

    /// Returns all jobs.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn jobs(&self) -> Result<Vec<JobRow>> {
        let (mut jobs, mut cursor) = (Vec::new(), String::new());
        loop {
            let page: Page = self.get(&format!("/v1/jobs?limit={ROWS_MAX}{cursor}")).await?;
            jobs.extend(page.items);
            let Some(next) = page.next_cursor else { return Ok(jobs) };
            cursor = format!("&cursor={next}");
        }
    }

    /// Returns whether a job is in this state.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn has_job_in(&self, state: &str) -> Result<bool> {
        let page: Page = self.get(&format!("/v1/jobs?state={state}&limit=1")).await?;
        Ok(!page.items.is_empty())
    }

    /// Returns the attempts of a job.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn attempts(&self, job: &str) -> Result<Vec<Attempt>> {
        self.get(&format!("/v1/jobs/{job}/attempts")).await
    }

    /// Returns the workers.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.get("/v1/workers").await
    }

    /// Returns what the doctor finds, and the checks that it could not complete.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn findings(&self) -> Result<Vec<String>> {
        let examination: Examination = self.get("/v1/doctor?full=true").await?;
        Ok(examination.findings.iter().chain(&examination.unanswered).map(Value::to_string).collect())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let (status, body) = self.ask(Method::GET, path, None, None).await?;
        ensure!(status == StatusCode::OK, "GET {path}: {status} {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).with_context(|| format!("GET {path}"))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<(StatusCode, Bytes)> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request =
            request.header("content-type", "application/json").body(Full::new(Bytes::from(body)))?;
        let answer = async {
            let response = self.client.request(request).await?;
            let status = response.status();
            anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        tokio::time::timeout(REQUEST_MAX, answer).await?
    }
}
