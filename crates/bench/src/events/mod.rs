//! `milepost bench events`: events, measured from their emit to the sink's acknowledgement.

mod emit;
mod live;
mod sink;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use milepost_cli_support::store::StoreAddress;
use milepost_core::event::{PageSize, Subscription};
use milepost_core::port::RelayStore;
use milepost_relay::publisher::{PublisherOptions, PublisherStats, publish};
use milepost_relay::sink::Sink;
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::sink::Broker;
use super::process;
use super::report::{Percentiles, per_s, print, rounded};
use super::target::Target;

/// The aggregate type of a benchmark's events, by which it recognizes events of earlier runs.
const AGGREGATE_TYPE: &str = "milepost-bench";
/// The maximum time without progress before the benchmark fails.
const STILL_MAX: Duration = Duration::from_secs(60);

/// How to measure events.
#[derive(Clone, Debug, Args)]
pub struct EventsBench {
    /// The number of events in the log before the relay starts [default: 1000000; single-emit: 20000 per round]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// The number of aggregates
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    aggregates: u64,
    /// The size of a payload
    #[arg(long, default_value_t = 200)]
    payload_bytes: usize,
    /// The sink of the events
    #[arg(long, value_enum, default_value_t = Broker::Null)]
    sink: Broker,
    /// The address of the broker [default: its usual port on this machine]
    #[arg(long, value_name = "URL", hide_env_values = true)]
    sink_url: Option<String>,
    /// Which number to measure
    #[arg(long, value_enum, default_value_t = Mode::Relay)]
    mode: Mode,
    /// How long events are emitted at 1,000 per second (relay), or a snapshot is held (held-snapshot) [default: 10; held-snapshot: 600]
    #[arg(long)]
    seconds: Option<u64>,
    /// The number of events that the relay reads per page
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    page_events_max: u64,
    /// The number of concurrent callers (single-emit)
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Latency from the call of emit to the acknowledgement at 1,000 events per second; then emit all, publish all
    Relay,
    /// One event per transaction from many callers, compared with a plain insert of the same row (PostgreSQL)
    SingleEmit,
    /// The same as relay before and while another session holds a snapshot (PostgreSQL)
    HeldSnapshot,
}

/// The JSON report.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct EventsReport {
    bench: &'static str,
    store: &'static str,
    sink: &'static str,
    events: u64,
    aggregates: u64,
    emit_per_s: Option<f64>,
    relay_per_s: Option<f64>,
    e2e_ms: Percentiles,
    wal_bytes_per_event: Option<f64>,
    peak_rss_mb: Option<f64>,
    #[serde(flatten)]
    own: std::collections::BTreeMap<&'static str, Value>,
}

impl EventsReport {
    fn with(mut self, name: &'static str, value: f64) -> Self {
        self.own.insert(name, rounded(value));
        self
    }

    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        print(self)
    }
}

impl EventsBench {
    fn events(&self) -> u64 {
        self.events.unwrap_or(if self.mode == Mode::SingleEmit { 20_000 } else { 1_000_000 })
    }
}

pub(super) async fn run(bench: &EventsBench, address: &StoreAddress) -> Result<EventsReport> {
    if bench.mode != Mode::Relay && matches!(address, StoreAddress::Sqlite(_)) {
        bail!("this --mode measures PostgreSQL; give --store postgres://…");
    }
    let target = Target::prepare(address).await?;
    let sink = bench.sink.open(bench.sink_url.as_deref()).await?;
    let report = match bench.mode {
        Mode::Relay => relay(bench, &target, sink).await?,
        Mode::SingleEmit => emit::singly(bench, &target, address).await?,
        Mode::HeldSnapshot => live::under_a_snapshot(bench, &target, sink).await?,
    };
    let sink = bench.sink.as_str();
    let (events, aggregates) = (bench.events(), bench.aggregates);
    let peak_rss_mb = process::peak_rss_mb();
    target.close().await;
    Ok(EventsReport { bench: "events", sink, events, aggregates, peak_rss_mb, ..report })
}

/// Runs `--mode relay`.
async fn relay(bench: &EventsBench, target: &Target, sink: Arc<dyn Sink>) -> Result<EventsReport> {
    // Measured first, while the server is otherwise idle: after filling the backlog it would be busy writing it for a while.
    let seconds = Duration::from_secs(bench.seconds.unwrap_or(10));
    let e2e = live::at_a_thousand(bench, target, sink.clone(), seconds).await?;
    let before = target.logged_bytes().await;
    let emit_per_s = emit::in_portions(bench, target).await?;
    let drained = drain(bench, target, sink).await?;
    let wal = before.zip(target.logged_bytes().await);
    Ok(EventsReport {
        store: target.name,
        emit_per_s: Some(emit_per_s),
        relay_per_s: Some(drained),
        e2e_ms: Percentiles::of(&e2e),
        wal_bytes_per_event: wal.map(|(before, after)| ((after - before) / bench.events() as f64).round()),
        ..EventsReport::default()
    })
}

/// Publishes all events in the log; returns the events per second, from the start of the relay.
async fn drain(bench: &EventsBench, target: &Target, sink: Arc<dyn Sink>) -> Result<f64> {
    let began = Instant::now();
    let relay = Relay::start(bench, target, sink);
    relay.wait_for(bench.events()).await?;
    let took = began.elapsed();
    relay.stop().await?;
    Ok(per_s(bench.events(), took.as_secs_f64()))
}

/// A running publisher.
struct Relay {
    stats: Arc<PublisherStats>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), milepost_core::error::StoreError>>,
}

impl Relay {
    fn start(bench: &EventsBench, target: &Target, sink: Arc<dyn Sink>) -> Self {
        let (stats, stop) = (Arc::new(PublisherStats::default()), CancellationToken::new());
        let mut options = PublisherOptions::new(Subscription::new("bench"), "bench");
        options.page = PageSize { events_max: bench.page_events_max as usize, ..options.page };
        let store: Arc<dyn RelayStore> = target.store.clone();
        let task = tokio::spawn(publish(store, sink, options, stats.clone(), stop.clone()));
        Self { stats, stop, task }
    }

    /// Waits until `events` events are published.
    async fn wait_for(&self, events: u64) -> Result<()> {
        let (mut last, mut moved_at) = (0, Instant::now());
        loop {
            let published = self.stats.view().published;
            if published >= events {
                return Ok(());
            }
            if published > last {
                (last, moved_at) = (published, Instant::now());
            } else if moved_at.elapsed() > STILL_MAX || self.task.is_finished() {
                bail!(
                    "the relay has published {published} of {events} events and makes no progress; MILEPOST_LOG=info logs why"
                );
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.task.await??)
    }
}
