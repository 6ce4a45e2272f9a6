//! `milepost bench api`: jobs created over HTTP, one per request and many per request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, header};
use milepost_cli_support::store::StoreAddress;
use milepost_server::Options;
use serde::Serialize;

use super::latency::micros;
use super::process;
use super::report::{Percentiles, median, per_s, print};
use super::served::{Connection, Served, connect};
use super::target::{QUEUE, Target};

/// The number of jobs in a request that creates many.
const MANY: u64 = 500;
/// The number of rounds of each measurement; the median is reported.
const ROUNDS: usize = 3;

/// How to measure the API.
#[derive(Clone, Debug, Args)]
pub struct ApiBench {
    /// The number of jobs that a round creates one by one; ten times as many are created in bulk
    #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
    /// The number of concurrent clients, each with a persistent connection
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1000))]
    clients: u64,
    /// The size of a payload
    #[arg(long, default_value_t = 100)]
    payload_bytes: usize,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// The JSON report.
#[derive(Debug, Serialize)]
pub(super) struct ApiReport {
    bench: &'static str,
    store: &'static str,
    clients: u64,
    create_per_s: f64,
    create_ms: Percentiles,
    create_many_per_s: f64,
    peak_rss_mb: Option<f64>,
}

impl ApiReport {
    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        print(self)
    }
}

pub(super) async fn run(bench: &ApiBench, address: &StoreAddress) -> Result<ApiReport> {
    let target = Target::prepare(address).await?;
    let served = Served::start(&target.store, Options::default()).await?;
    let (mut singly, mut many, mut latency) = (Vec::new(), Vec::new(), Histogram::new(3)?);
    for _ in 0..ROUNDS {
        let one = Asked { path: "/v1/jobs", body: job(bench), jobs: 1 };
        singly.push(round(bench, served.at, one, bench.jobs, &mut latency).await?);
        let jobs = vec![job(bench); MANY as usize].join(",");
        let several =
            Asked { path: "/v1/jobs/create-many", body: format!("{{\"jobs\":[{jobs}]}}"), jobs: MANY };
        many.push(round(bench, served.at, several, 10 * bench.jobs, &mut Histogram::new(3)?).await?);
    }
    served.end().await?;
    let store = target.name;
    target.close().await;
    Ok(ApiReport {
        bench: "api",
        store,
        clients: bench.clients,
        create_per_s: median(singly),
        create_ms: Percentiles::of(&latency),
        create_many_per_s: median(many),
        peak_rss_mb: process::peak_rss_mb(),
    })
}

fn job(bench: &ApiBench) -> String {
    let text = "x".repeat(bench.payload_bytes.saturating_sub(12));
    format!("{{\"kind\":\"bench\",\"queue\":\"{QUEUE}\",\"payload\":{{\"text\":\"{text}\"}}}}")
}

/// The content of each request.
struct Asked {
    path: &'static str,
    body: String,
    jobs: u64,
}

/// All clients send their share of the requests; returns the jobs created per second.
async fn round(
    bench: &ApiBench,
    at: SocketAddr,
    asked: Asked,
    jobs: u64,
    latency: &mut Histogram<u64>,
) -> Result<f64> {
    let requests = (jobs / asked.jobs).max(bench.clients);
    let (asked, clients) = (Arc::new(asked), bench.clients);
    let connections = try_join_all((0..clients).map(|_| connect(at))).await?;
    let began = Instant::now();
    let sending = connections.into_iter().zip(0..).map(|(connection, client): (_, u64)| {
        let share = requests / clients + u64::from(client < requests % clients);
        tokio::spawn(send(connection, at, asked.clone(), share))
    });
    for took in try_join_all(sending).await? {
        took?.into_iter().try_for_each(|took| latency.record(micros(took)))?;
    }
    Ok(per_s(requests * asked.jobs, began.elapsed().as_secs_f64()))
}

/// Sends requests one after another; returns their durations.
async fn send(
    mut connection: Connection,
    at: SocketAddr,
    asked: Arc<Asked>,
    requests: u64,
) -> Result<Vec<Duration>> {
    let body = Bytes::from(asked.body.clone());
    let mut took = Vec::new();
    for _ in 0..requests {
        let request = Request::builder()
            .method(Method::POST)
            .uri(asked.path)
            .header(header::HOST, at.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))?;
        let answer = connection.ask(request).await?;
        took.push(answer.took);
        ensure!(answer.status == StatusCode::CREATED, "unexpected response of the server: {answer}");
    }
    Ok(took)
}
