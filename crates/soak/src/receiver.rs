//! The server that jobs call and to which events are posted. It answers at once, and records each arrival with its time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// The longest latency that is recorded exactly, in milliseconds.
const LATENCY_MS_MAX: u64 = 600_000;

/// The payload of a job or an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Numbered {
    /// Its number: of all jobs, or of the events of its aggregate, from 0 on.
    pub(crate) number: u64,
    /// The aggregate; 0 for jobs.
    pub(crate) aggregate: u64,
    /// When it was created, in milliseconds since 1970.
    pub(crate) at_ms: u64,
}

/// The arrivals.
#[derive(Debug, Default)]
struct Arrived {
    /// For each job whether it has arrived.
    jobs: Vec<bool>,
    jobs_again: u64,
    /// The number of the next event of each aggregate.
    events: HashMap<u64, u64>,
    events_in_all: u64,
    events_again: u64,
    /// Events that arrived before an earlier one of their aggregate.
    events_early: u64,
    latency: Latency,
}

/// The time from the creation of jobs to their call since the last sample.
#[derive(Debug)]
struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LATENCY_MS_MAX, 3).expect("valid bounds"))
    }
}

/// How much has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Different jobs, and calls of jobs that had arrived before.
    pub(crate) jobs: u64,
    pub(crate) jobs_again: u64,
    /// Different events, and deliveries of events that had arrived before.
    pub(crate) events: u64,
    pub(crate) events_again: u64,
    /// Events that arrived before an earlier one of their aggregate.
    pub(crate) events_early: u64,
}

/// The receiver. Clones share the arrivals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    arrived: Arc<Mutex<Arrived>>,
}

impl Receiver {
    /// Starts the server, on a free port of this machine.
    pub(crate) async fn start() -> Result<(Self, SocketAddr)> {
        let receiver = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Router::new().route("/jobs", post(job)).route("/events", post(event));
        let routes = routes.with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok((receiver, address))
    }

    pub(crate) fn counts(&self) -> Counts {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        Counts {
            jobs: arrived.jobs.iter().filter(|has_arrived| **has_arrived).count() as u64,
            jobs_again: arrived.jobs_again,
            events: arrived.events_in_all,
            events_again: arrived.events_again,
            events_early: arrived.events_early,
        }
    }

    /// Returns the latencies at these quantiles since the last call, in milliseconds; none if no job arrived.
    pub(crate) fn take_latency<const N: usize>(&self, quantiles: [f64; N]) -> Option<[f64; N]> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = std::mem::take(&mut arrived.latency).0;
        #[allow(clippy::cast_precision_loss, reason = "milliseconds are small")]
        let at = |quantile| latency.value_at_quantile(quantile) as f64;
        (!latency.is_empty()).then(|| quantiles.map(at))
    }
}

async fn job(State(receiver): State<Receiver>, Json(job): Json<Numbered>) {
    let mut arrived = receiver.arrived.lock().unwrap_or_else(PoisonError::into_inner);
    let index = usize::try_from(job.number).expect("a small number");
    if arrived.jobs.len() <= index {
        arrived.jobs.resize(index + 1, false);
    }
    if std::mem::replace(&mut arrived.jobs[index], true) {
        arrived.jobs_again += 1;
        return;
    }
    let took = now_ms().saturating_sub(job.at_ms).clamp(1, LATENCY_MS_MAX);
    arrived.latency.0.record(took).expect("within bounds");
}

async fn event(State(receiver): State<Receiver>, Json(event): Json<Numbered>) {
    let mut arrived = receiver.arrived.lock().unwrap_or_else(PoisonError::into_inner);
    let next = arrived.events.entry(event.aggregate).or_default();
    match event.number.cmp(next) {
        std::cmp::Ordering::Equal => {
            *next += 1;
            arrived.events_in_all += 1;
        }
        std::cmp::Ordering::Less => arrived.events_again += 1,
        std::cmp::Ordering::Greater => {
            *next = event.number + 1;
            arrived.events_in_all += 1;
            arrived.events_early += 1;
        }
    }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
