//! `milepost bench`: benchmarks through the interfaces that users have: the enqueue API and the worker runtime.

mod aged;
mod api;
mod backlog;
mod batch;
mod bulk;
mod console;
mod drain;
mod events;
mod filling;
mod heavy_tailed;
mod held_snapshot;
mod latency;
mod limited;
mod lying_statistics;
mod process;
mod report;
mod served;
mod shape;
mod single_enqueue;
mod stream;
mod target;
mod workload;

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::StoreAddress;
use serde::Serialize;

use target::Target;

const EXAMPLES: &str = "\
A benchmark recreates its store. On SQLite, the file is removed with its -wal
and -shm files; on PostgreSQL, the schema milepost is dropped with its content.
The store must not exist, or must be that of an earlier benchmark: a store with
other tables than Milepost's, or with jobs, schedules or workers of queues
other than milepost-bench, is refused and not changed.

Examples:
  milepost bench jobs --store sqlite:bench.db --jobs 200000 --json
  milepost bench jobs --store postgres://postgres@localhost/bench --jobs 200000
  milepost bench jobs --store postgres://postgres@localhost/bench --mode latency";

const BULK_EXAMPLES: &str = "\
Recreates its store like `milepost bench jobs`. The benchmark's own tables,
milepost_bench_member and milepost_bench_note, are removed at the end.

Examples:
  milepost bench bulk --store postgres://postgres@localhost/bench --json
  milepost bench bulk --store sqlite:bench.db --rows 200000
  milepost bench bulk --store postgres://postgres@localhost/bench --rows 60000 --rate 2000";

const BATCH_EXAMPLES: &str = "\
Recreates its store like `milepost bench jobs`.

Examples:
  milepost bench batch --store postgres://postgres@localhost/bench --json
  milepost bench batch --store sqlite:bench.db --shape join --tasks 10001
  milepost bench batch --store sqlite:bench.db --shape heavy-tailed --tasks 57934 --hub 21821
  milepost bench batch --store sqlite:bench.db --shape chain --tasks 500
  milepost bench batch --store sqlite:bench.db --batches 1000 --tasks 20
  milepost bench batch --store sqlite:bench.db --shape edges.tsv";

const EVENTS_EXAMPLES: &str = "\
Recreates its store like `milepost bench jobs`. Published events stay in the
broker.

Examples:
  milepost bench events --store postgres://postgres@localhost/bench --json
  milepost bench events --store sqlite:bench.db --events 200000
  milepost bench events --store postgres://postgres@localhost/bench --sink nats
  milepost bench events --store postgres://postgres@localhost/bench --mode single-emit";

const API_EXAMPLES: &str = "\
Recreates its store like `milepost bench jobs`. Server and clients run in one
process on this machine.

Examples:
  milepost bench api --store postgres://postgres@localhost/bench --json
  milepost bench api --store sqlite:bench.db --jobs 10000";

const STREAM_EXAMPLES: &str = "\
Recreates its store like `milepost bench jobs`. Server and clients run in one
process on this machine. Each client must receive every change once.

Examples:
  milepost bench stream --store postgres://postgres@localhost/bench --json
  milepost bench stream --store sqlite:bench.db --clients 50 --per-second 5000";

const CONSOLE_EXAMPLES: &str = "\
Fills a store with jobs of 20 days, of which a fifth wait and one in a hundred
failed, with a large batch, schedules, a bulk job and events, and requests
every page. Server and client run in one process on this machine.

The store must be empty: unlike other benchmarks, this one removes nothing, and
its store can be viewed with `milepost serve` afterwards. Ten million jobs take
several GB, and some time to create.

Examples:
  milepost bench console --store postgres://postgres@localhost/bench-console
  milepost bench console --store sqlite:console.db --jobs 1000000 --json";

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Enqueue and run jobs that do nothing
    #[command(after_help = EXAMPLES)]
    Jobs(JobsBench),
    /// Run a bulk job over many rows, and the same statements without one
    #[command(after_help = BULK_EXAMPLES)]
    Bulk(bulk::BulkBench),
    /// Run batches whose tasks do nothing
    #[command(after_help = BATCH_EXAMPLES)]
    Batch(batch::BatchBench),
    /// Emit events and publish them
    #[command(after_help = EVENTS_EXAMPLES)]
    Events(events::EventsBench),
    /// Create jobs over HTTP
    #[command(after_help = API_EXAMPLES)]
    Api(api::ApiBench),
    /// Stream state changes to many clients
    #[command(after_help = STREAM_EXAMPLES)]
    Stream(stream::StreamBench),
    /// Request the console's pages on a large store
    #[command(after_help = CONSOLE_EXAMPLES)]
    Console(console::ConsoleBench),
}

/// How to measure jobs.
#[derive(Clone, Debug, Args)]
pub struct JobsBench {
    /// The number of jobs [default: 200000; latency: 1000; single-enqueue: 20000 per round]
    #[arg(long)]
    jobs: Option<u64>,
    /// The number of concurrent callers that enqueue [default: 4; single-enqueue: 32]
    #[arg(long)]
    clients: Option<usize>,
    /// The size of a payload
    #[arg(long, default_value_t = 100)]
    payload_bytes: usize,
    /// Which number to measure
    #[arg(long, value_enum, default_value_t = Mode::Throughput)]
    mode: Mode,
    /// The duration of the measurement (held-snapshot)
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Jobs per second (held-snapshot; limited: of the kind that has a rate)
    #[arg(long, default_value_t = 2000)]
    rate: u64,
    /// Jobs that are ready (backlog)
    #[arg(long, default_value_t = 5_000_000)]
    ready: u64,
    /// Jobs of a higher priority whose time has not come (backlog)
    #[arg(long, default_value_t = 1_000_000)]
    future: u64,
    /// The simulated age of the store (aged)
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3650))]
    days: u64,
    /// The simulated number of jobs per day (aged)
    #[arg(long, default_value_t = 1_000_000)]
    per_day: u64,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Enqueue all, then run all
    Throughput,
    /// Latency on an idle system, one job at a time: from the call of enqueue to the start of the handler
    Latency,
    /// One job per transaction from many callers, with and without wake-ups (PostgreSQL)
    SingleEnqueue,
    /// A steady stream while another session holds a snapshot (PostgreSQL)
    HeldSnapshot,
    /// How long a claim takes above a small and above a large backlog
    Backlog,
    /// Throughput on a store that has run for days, also while retention deletes old jobs
    Aged,
    /// Throughput when the planner's statistics are wrong (PostgreSQL)
    LyingStatistics,
    /// Throughput of an unlimited kind alone, and together with backlogs of a kind with a rate and of limited groups
    Limited,
}

impl Mode {
    /// Rejects a store that the mode cannot measure, before changing it.
    fn check(self, address: &StoreAddress) -> anyhow::Result<()> {
        match (self, address) {
            (Self::Throughput | Self::Latency | Self::Backlog | Self::Limited, _)
            | (_, StoreAddress::Postgres(_)) => Ok(()),
            (mode, StoreAddress::Sqlite(_)) => {
                let name =
                    mode.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                bail!("--mode {name} measures PostgreSQL; give --store postgres://…")
            }
        }
    }
}

impl JobsBench {
    fn jobs(&self) -> u64 {
        self.jobs.unwrap_or(match self.mode {
            Mode::Latency => 1000,
            Mode::SingleEnqueue => 20_000,
            _ => 200_000,
        })
    }

    fn seconds(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Runs a benchmark and prints its report.
pub async fn run(command: BenchCommand, address: &StoreAddress) -> anyhow::Result<Outcome> {
    let told = match command {
        BenchCommand::Jobs(bench) => run_jobs(bench, address).await?,
        BenchCommand::Batch(bench) => {
            let report = batch::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
        BenchCommand::Events(bench) => {
            let report = events::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
        BenchCommand::Api(bench) => {
            let report = api::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
        BenchCommand::Stream(bench) => {
            let report = stream::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
        BenchCommand::Console(bench) => {
            let report = console::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
        BenchCommand::Bulk(bench) => {
            let report = bulk::run(&bench, address).await?;
            if bench.json { line(&report) } else { report.print() }
        }
    };
    output::heard_or_not(told)?;
    Ok(Outcome::Done)
}

fn line(report: &impl Serialize) -> anyhow::Result<()> {
    Ok(output::line(serde_json::to_string(report)?)?)
}

/// Runs a benchmark of jobs; the inner result is that of printing the report.
async fn run_jobs(bench: JobsBench, address: &StoreAddress) -> anyhow::Result<anyhow::Result<()>> {
    bench.mode.check(address)?;
    let report = match bench.mode {
        Mode::Throughput => drain::run(&bench, &Target::prepare(address).await?).await?,
        Mode::Latency => latency::run(&bench, &Target::prepare(address).await?).await?,
        Mode::SingleEnqueue => single_enqueue::run(&bench, &Target::prepare(address).await?, address).await?,
        Mode::HeldSnapshot => held_snapshot::run(&bench, &Target::prepare(address).await?).await?,
        Mode::Backlog => backlog::run(&bench, address).await?,
        Mode::Aged => aged::run(&bench, address).await?,
        Mode::LyingStatistics => lying_statistics::run(&bench, address).await?,
        Mode::Limited => limited::run(&bench, address).await?,
    };
    Ok(if bench.json { line(&report) } else { report.print() })
}
