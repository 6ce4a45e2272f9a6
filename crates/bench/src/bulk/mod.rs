//! `milepost bench bulk`: a bulk job over many rows, compared with the same statements without Milepost.

mod by_hand;
mod members;
mod recorder;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use hdrhistogram::Histogram;
use milepost::bulk::{Bulk, Definition, Sizing};
use milepost::{JobState, NewJob, RetentionPolicy, Worker};
use milepost_cli_support::store::StoreAddress;
use serde::Serialize;
use serde_json::Value;

use super::process;
use super::report::{Percentiles, median, per_s, rounded};
use super::target::{QUEUE, Target};
use members::Members;
use recorder::{Recorder, Tape};

/// How to measure bulk jobs.
#[derive(Clone, Debug, Args)]
pub struct BulkBench {
    /// The number of rows
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// The rate to hold, in rows per second; there is no baseline run then
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// The target duration of a chunk [SQLite: 30ms at most]
    #[arg(long, default_value = "350ms", value_parser = milepost_cli_support::parsers::positive_duration)]
    chunk: Duration,
    /// The number of rounds, each of which measures both; the medians are reported
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=99))]
    rounds: u64,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err("rows per second must be a number above 0".to_owned()),
    }
}

/// The JSON report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BulkReport {
    bench: &'static str,
    store: &'static str,
    rows: u64,
    rows_per_s: f64,
    by_hand_rows_per_s: Option<f64>,
    ratio: Option<Value>,
    chunks: u64,
    chunk_ms: Percentiles,
    peak_rss_mb: Option<f64>,
    #[serde(flatten)]
    own: BTreeMap<&'static str, Value>,
}

/// The results of the baseline.
struct Beside {
    rows_per_s: f64,
    /// The median of the ratios of the rounds. Within a round, the machine's speed varies less than between rounds.
    ratio: f64,
}

/// The result of one run.
struct Ran {
    rows_per_s: f64,
    tape: Tape,
}

pub(super) async fn run(bench: &BulkBench, address: &StoreAddress) -> Result<BulkReport> {
    let target = Target::prepare(address).await?;
    let members = Members::make(&target, address, bench.rows).await?;
    let measured = measure(bench, &target, &members).await;
    members.remove().await?;
    measured
}

async fn measure(bench: &BulkBench, target: &Target, members: &Members) -> Result<BulkReport> {
    if bench.rate.is_some() {
        let ran = run_bulk(bench, target, members).await?;
        return Ok(report(bench, target, &ran, None));
    }
    // The first run is not measured, because it pays for new WAL files. Its chunk sizes are used for the baseline.
    let mut sizes = run_bulk(bench, target, members).await?.tape.sizes();
    let (mut runs, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        // The order alternates, because the first of a pair is slower.
        for bulk in [round % 2 == 0, round % 2 == 1] {
            members.forget_notes().await?;
            if bulk {
                let ran = run_bulk(bench, target, members).await?;
                sizes = ran.tape.sizes();
                runs.push(ran);
            } else {
                let took = by_hand::run(members, &sizes).await?;
                by_hand.push(per_s(bench.rows, took.as_secs_f64()));
            }
            members.verify(bench.rows).await?;
        }
    }
    let ratios = runs.iter().zip(&by_hand).map(|(ran, by_hand)| ran.rows_per_s / by_hand).collect();
    let beside = Beside { ratio: median(ratios), rows_per_s: median(by_hand) };
    runs.sort_by(|a, b| a.rows_per_s.total_cmp(&b.rows_per_s));
    let ran = runs.get(runs.len() / 2).context("at least one round")?;
    Ok(report(bench, target, ran, Some(beside)))
}

fn report(bench: &BulkBench, target: &Target, ran: &Ran, by_hand: Option<Beside>) -> BulkReport {
    let mut own = BTreeMap::new();
    if let Some(rate) = bench.rate {
        own.insert("rate", rounded(rate));
        own.insert("rate_held", rounded(ran.rows_per_s / rate));
    }
    BulkReport {
        bench: "bulk",
        store: target.name,
        rows: bench.rows,
        rows_per_s: ran.rows_per_s,
        by_hand_rows_per_s: by_hand.as_ref().map(|by_hand| by_hand.rows_per_s),
        ratio: by_hand.as_ref().map(|by_hand| rounded(by_hand.ratio)),
        chunks: ran.tape.chunks.len() as u64,
        chunk_ms: percentiles(&ran.tape),
        peak_rss_mb: process::peak_rss_mb(),
        own,
    }
}

fn percentiles(tape: &Tape) -> Percentiles {
    let Ok(mut histogram) = Histogram::<u64>::new(3) else { return Percentiles::default() };
    for chunk in &tape.chunks {
        // Values out of range are ignored.
        let _ = histogram.record(u64::try_from(chunk.took.as_micros()).unwrap_or(u64::MAX));
    }
    Percentiles::of(&histogram)
}

/// Runs the bulk job on a worker; measures from the first chunk to the end of the run.
async fn run_bulk(bench: &BulkBench, target: &Target, members: &Members) -> Result<Ran> {
    let mut definition = Definition::new("bench_notify");
    QUEUE.clone_into(&mut definition.queue);
    definition.sizing = Sizing { target: bench.chunk, ..Sizing::default() };
    definition.load.rows_per_s = bench.rate;
    let (recorder, tape) = Recorder::new(members.work(target, &definition)?);
    let bulk = Bulk::new(definition, Arc::new(recorder));
    bulk.check().await?;
    let job = bulk.definition().direct(NewJob::new("", &serde_json::json!({}))?);
    let job = target.store.start_bulk(&job).await?.job;
    Worker::builder(target.store.clone())
        .queues([QUEUE])
        .bulk(bulk)
        .options(|options| options.retention = RetentionPolicy::FOREVER)
        .drain()
        .await?;
    let state = target.store.job(job).await?.map(|job| job.row.state);
    anyhow::ensure!(state == Some(JobState::Succeeded), "the run of the benchmark is {state:?}");
    let tape = tape.take();
    Ok(Ran { rows_per_s: per_s(bench.rows, tape.elapsed().as_secs_f64()), tape })
}

impl BulkReport {
    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        super::report::print(self)
    }
}
