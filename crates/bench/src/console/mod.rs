//! `milepost bench console`: response times of the console's pages with a large store.

mod beside;
mod fill;
mod pages;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use milepost_cli_support::output;
use milepost_cli_support::store::StoreAddress;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_server::Options;
use serde::Serialize;

use self::fill::Filling;
use self::pages::{Timed, Visitor, as_rounded};
use super::process;
use super::report::{print, rounded};
use super::served::Served;
use super::target::Target;

/// How to measure the console.
#[derive(Clone, Debug, Args)]
pub struct ConsoleBench {
    /// The number of jobs in the store
    #[arg(long, default_value_t = 10_000_000,
          value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    jobs: u64,
    /// The number of tasks of its batch
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: u64,
    /// The number of measurements of each page, after a first one that does not count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// The JSON report.
#[derive(Debug, Serialize)]
pub(super) struct ConsoleReport {
    #[serde(flatten)]
    whole: Whole,
    pages: Vec<Timed>,
}

/// The summary of all pages.
#[derive(Debug, Serialize)]
struct Whole {
    bench: &'static str,
    store: &'static str,
    jobs: u64,
    tasks: u64,
    #[serde(serialize_with = "as_rounded")]
    fill_s: f64,
    worst_page: &'static str,
    #[serde(serialize_with = "as_rounded")]
    worst_median_ms: f64,
    first_load_bytes: usize,
    peak_rss_mb: Option<f64>,
}

impl ConsoleReport {
    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        let headings = ["PAGE", "MEDIAN MS", "WORST MS", "BYTES"];
        let mut listing = Listing::new(headings.map(Column::unbroken));
        for timed in &self.pages {
            listing.row([
                Field::text(timed.page),
                Field::text(rounded(timed.median_ms).to_string()),
                Field::text(rounded(timed.worst_ms).to_string()),
                Field::text(timed.bytes.to_string()),
            ]);
        }
        listing.print()?;
        output::line("")?;
        print(&self.whole)
    }
}

pub(super) async fn run(bench: &ConsoleBench, address: &StoreAddress) -> Result<ConsoleReport> {
    let target = Target::fresh(address).await?;
    let began = Instant::now();
    let worker = beside::register(target.store.as_ref()).await?;
    let now_ms = target.store.clock().await?.now.as_millisecond();
    fill::fill(Filling { jobs: bench.jobs, now_ms, worker }, &target, address).await?;
    let places = beside::make(bench.tasks, worker, &target.store).await?;
    let fill_s = began.elapsed().as_secs_f64();

    let served = Served::start(&target.store, Options::default()).await?;
    let mut visitor = Visitor::new(served.at).await?;
    let pages = visitor.measure(bench.jobs, &places, bench.rounds).await?;
    let first_load_bytes = visitor.first_load().await?;
    drop(visitor);
    served.end().await?;
    let store = target.name;
    target.close().await;

    let worst = pages.iter().max_by(|a, b| a.median_ms.total_cmp(&b.median_ms));
    let worst = worst.context("no page was requested")?;
    let whole = Whole {
        bench: "console",
        store,
        jobs: bench.jobs,
        tasks: bench.tasks,
        fill_s,
        worst_page: worst.page,
        worst_median_ms: worst.median_ms,
        first_load_bytes,
        peak_rss_mb: process::peak_rss_mb(),
    };
    Ok(ConsoleReport { whole, pages })
}
