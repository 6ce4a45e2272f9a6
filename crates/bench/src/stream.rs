//! `milepost bench stream`: how soon many clients of the stream receive changes, and whether each receives every change once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::future::try_join_all;
use hdrhistogram::{Histogram, RecordError};
use memchr::memmem;
use milepost_cli_support::store::StoreAddress;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_server::{Options, StreamLimits};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::latency::micros;
use super::process;
use super::report::{Percentiles, print};
use super::served::Served;
use super::target::Target;
use super::workload::noop;

/// The interval at which jobs are created in portions.
const CREATE_EVERY: Duration = Duration::from_millis(10);
/// The number of clients that measure latency; all clients count changes.
const TIMED: usize = 20;
/// How long the last changes may take to reach the last client.
const DRAIN_MAX: Duration = Duration::from_secs(30);
/// The text before the id of a job in a change.
const JOB: &[u8] = b"\"job\":\"";
const ID_BYTES: usize = 36;
/// The number of bytes that a client reads at once.
const READ_BYTES: usize = 64 * 1024;

/// How to measure the stream.
#[derive(Clone, Debug, Args)]
pub struct StreamBench {
    /// The number of clients
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: u16,
    /// The number of changes per second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    per_second: u32,
    /// The duration of the measurement
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// The JSON report.
#[derive(Debug, Serialize)]
pub(super) struct StreamReport {
    bench: &'static str,
    store: &'static str,
    clients: u16,
    changes: u64,
    changes_per_s: f64,
    told_per_s: f64,
    told_ms: Percentiles,
    peak_rss_mb: Option<f64>,
}

impl StreamReport {
    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        print(self)
    }
}

/// When each job was about to be created.
type Created = Arc<Mutex<HashMap<String, Instant>>>;

pub(super) async fn run(bench: &StreamBench, address: &StoreAddress) -> Result<StreamReport> {
    let target = Target::prepare(address).await?;
    let clients = usize::from(bench.clients);
    let streams =
        StreamLimits { streams_max: clients, streams_per_client_max: clients, ..StreamLimits::default() };
    let served = Served::start(&target.store, Options { streams, ..Options::default() }).await?;
    let created = Created::default();
    let (done, changes) = watch::channel(None);
    let opened = try_join_all((0..clients).map(|_| open(served.at))).await?;
    let watching: Vec<_> = opened
        .into_iter()
        .enumerate()
        .map(|(n, stream)| {
            let created = (n < TIMED).then(|| Arc::clone(&created));
            tokio::spawn(count(stream, created, changes.clone()))
        })
        .collect();
    let began = Instant::now();
    let total = create(bench, target.store.as_ref(), &created).await?;
    let elapsed_s = began.elapsed().as_secs_f64();
    done.send_replace(Some(total));
    let mut latency = Histogram::new(3)?;
    for watcher in try_join_all(watching).await? {
        latency.add(watcher?)?;
    }
    served.end().await?;
    let store = target.name;
    target.close().await;
    let changes_per_s = total as f64 / elapsed_s;
    Ok(StreamReport {
        bench: "stream",
        store,
        clients: bench.clients,
        changes: total,
        changes_per_s,
        told_per_s: changes_per_s * f64::from(bench.clients),
        told_ms: Percentiles::of(&latency),
        peak_rss_mb: process::peak_rss_mb(),
    })
}

/// Creates jobs at a constant rate; returns their number.
async fn create(bench: &StreamBench, store: &dyn Store, created: &Created) -> Result<u64> {
    let portions = 1000 / CREATE_EVERY.as_millis() as u32;
    let portion = bench.per_second / portions;
    let mut ticks = interval(CREATE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut total = 0;
    for _ in 0..bench.seconds * portions {
        ticks.tick().await;
        let jobs = (0..u64::from(portion)).map(|n| noop(total + n, 100)).collect::<Result<Vec<_>>>()?;
        note(created, &jobs);
        store.enqueue_many(&jobs).await?;
        total += u64::from(portion);
    }
    Ok(total)
}

/// Records that these jobs are about to be created.
fn note(created: &Created, jobs: &[NewJob]) {
    let now = Instant::now();
    let mut known = created.lock().unwrap_or_else(PoisonError::into_inner);
    known.extend(jobs.iter().map(|job| (job.id.to_string(), now)));
}

/// Opens a stream and reads its first event, which contains the position.
async fn open(at: SocketAddr) -> Result<(TcpStream, Vec<u8>)> {
    let mut stream = TcpStream::connect(at).await?;
    stream.write_all(format!("GET /v1/stream HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await?;
    let mut read = Vec::new();
    while !read.windows(2).any(|pair| pair == b"\n\n") {
        if stream.read_buf(&mut read).await? == 0 {
            bail!("the server closed a stream: {}", String::from_utf8_lossy(&read));
        }
    }
    Ok((stream, Vec::with_capacity(READ_BYTES)))
}

/// Reads until all changes were received; returns the latencies.
async fn count(
    (mut stream, mut read): (TcpStream, Vec<u8>),
    created: Option<Created>,
    mut changes: watch::Receiver<Option<u64>>,
) -> Result<Histogram<u64>> {
    let mut latency = Histogram::new(3)?;
    let mut told = 0;
    loop {
        let total = *changes.borrow_and_update();
        match total {
            Some(total) if told == total => return Ok(latency),
            Some(total) if told > total => bail!("a client received {told} of {total} changes"),
            _ => {}
        }
        let bytes = tokio::select! {
            bytes = timeout(DRAIN_MAX, stream.read_buf(&mut read)) => bytes.context("a client received too few changes")??,
            _ = changes.changed(), if total.is_none() => continue,
        };
        if bytes == 0 {
            bail!("the server closed a stream: {}", String::from_utf8_lossy(&read));
        }
        let now = Instant::now();
        let known = created.as_ref().map(|created| created.lock().unwrap_or_else(PoisonError::into_inner));
        told += take_ids(&mut read, |id| match known.as_ref().and_then(|known| known.get(id)) {
            Some(at) => latency.record(micros(now - *at)),
            None => Ok(()),
        })?;
    }
}

/// Removes complete job ids from the buffer and keeps a partial one at its end; returns the number of ids.
fn take_ids(
    read: &mut Vec<u8>,
    mut take: impl FnMut(&str) -> Result<(), RecordError>,
) -> Result<u64, RecordError> {
    let (mut ids, mut taken) = (0, 0);
    while let Some(found) = memmem::find(&read[taken..], JOB) {
        let begin = taken + found + JOB.len();
        let Some(id) = read.get(begin..begin + ID_BYTES) else {
            read.drain(..taken + found);
            return Ok(ids);
        };
        take(std::str::from_utf8(id).unwrap_or_default())?;
        ids += 1;
        taken = begin + ID_BYTES;
    }
    read.drain(..taken.max(read.len().saturating_sub(JOB.len())));
    Ok(ids)
}
