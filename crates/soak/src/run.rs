//! A soak from its begin to its verdict.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex as Lock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use clap::Parser;
use milepost_testkit::examine::examine;
use tokio::sync::Mutex;
use tokio::time::{interval, sleep, timeout};

use crate::configuration;
use crate::faults::{Fault, inject};
use crate::load::Load;
use crate::place::{Place, StoreKind};
use crate::processes::Processes;
use crate::receiver::Receiver;
use crate::samples::Samples;
use crate::table::Outcome;

/// The interval of samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// The number of jobs with which the largest rate is measured.
const TRIAL_JOBS: u64 = 10_000;
/// How long these jobs, and the rest at the end, may take.
const DRAIN_MAX: Duration = Duration::from_secs(120);

/// What to do.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "milepost-soak",
    about = "Runs Milepost for hours under load and faults, and shows that nothing grows"
)]
pub struct SoakArgs {
    /// The store
    #[arg(long, value_enum, default_value = "sqlite")]
    store: StoreKind,
    /// How long the load lasts, in minutes
    #[arg(long, default_value_t = 120.0)]
    minutes: f64,
    /// The time at the begin in which sizes may grow, in minutes; default: a quarter
    #[arg(long)]
    warm_up: Option<f64>,
    /// Jobs a second; default: half of the largest rate, which is measured first
    #[arg(long)]
    rate: Option<f64>,
    /// The program under test
    #[arg(long, default_value = "target/release/milepost")]
    milepost: PathBuf,
    /// A file for all measurements, as JSON
    #[arg(long)]
    samples: Option<PathBuf>,
    #[command(flatten)]
    disk: Disk,
}

/// Where the store is.
#[derive(Clone, Debug, Args)]
struct Disk {
    /// The folder in which the store and the logs of the programs are created, and deleted at the end
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// Runs a soak.
///
/// # Errors
/// When a program cannot be started, or something cannot be measured.
pub async fn run(args: &SoakArgs) -> Result<Outcome> {
    let program =
        args.milepost.canonicalize().with_context(|| format!("{} is missing", args.milepost.display()))?;
    let folder = tempfile::Builder::new().prefix("soak-").tempdir_in(args.disk.folder.canonicalize()?)?;
    readable_by_all(folder.path())?;
    let place = Place::create(args.store, folder.path()).await?;
    let (receiver, address) = Receiver::start().await?;
    std::fs::write(folder.path().join("milepost.toml"), configuration::text(&place.address, address))?;
    let processes = Mutex::new(Processes::start(program, folder.path())?);
    let mut load = Load::new(place.store.clone());
    let rate_max = if args.rate.is_some() { None } else { Some(measure_rate(&mut load, &receiver).await?) };
    let rate = args.rate.or(rate_max.map(|most| most / 2.0)).unwrap_or_default();
    let (duration, mut samples) = (Duration::from_secs_f64(args.minutes * 60.0), Samples::new(rate));
    let faults = Lock::new(BTreeMap::<Fault, u32>::new());
    let began = Instant::now();
    tokio::select! {
        done = load.run(rate, duration) => done?,
        failed = inject(&place, &processes, &faults) => failed?,
        failed = sample(&mut samples, began, &place, &processes, &receiver) => failed?,
    }
    let judged = (args.warm_up.unwrap_or(args.minutes / 4.0) * 60.0, began.elapsed().as_secs_f64());
    let _ = timeout(DRAIN_MAX, has_arrived(&load, &receiver)).await;
    let mut failed = processes.into_inner().finish().await;
    failed.extend(examine(&place.store).await.iter().map(|finding| format!("doctor: {finding:?}")));
    if let Some(path) = &args.samples {
        std::fs::write(path, serde_json::to_vec(&samples.points())?)?;
    }
    let (trends, faults) = (samples.trends(judged.0), faults.into_inner().unwrap_or_default());
    let (store, arrived, jobs, events) = (args.store, receiver.counts(), load.jobs, load.events);
    Ok(Outcome { store, rate, rate_max, faults, jobs, events, arrived, trends, judged, failed })
}

/// PostgreSQL runs under an account of its own.
fn readable_by_all(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))?)
}

/// Returns how many jobs a second are run while there is a backlog.
async fn measure_rate(load: &mut Load, receiver: &Receiver) -> Result<f64> {
    // First some that warm everything up.
    drain(load, receiver, TRIAL_JOBS / 10).await?;
    let took = drain(load, receiver, TRIAL_JOBS).await?;
    receiver.take_latency([]);
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    Ok(TRIAL_JOBS as f64 / took.as_secs_f64())
}

/// Creates jobs and waits until all have run. Returns how long that took.
async fn drain(load: &mut Load, receiver: &Receiver, jobs: u64) -> Result<Duration> {
    let began = Instant::now();
    for _ in 0..jobs / 500 {
        load.create(500).await?;
    }
    let arrived = timeout(DRAIN_MAX, has_arrived(load, receiver)).await;
    ensure!(arrived.is_ok(), "{jobs} jobs took longer than {} s", DRAIN_MAX.as_secs());
    Ok(began.elapsed())
}

/// Waits until all created jobs and events have arrived.
async fn has_arrived(load: &Load, receiver: &Receiver) {
    loop {
        let counts = receiver.counts();
        if counts.jobs >= load.jobs && counts.events >= load.events {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Takes samples until it is dropped.
async fn sample(
    samples: &mut Samples,
    began: Instant,
    place: &Place,
    processes: &Mutex<Processes>,
    receiver: &Receiver,
) -> Result<()> {
    let mut ticks = interval(SAMPLE_EVERY);
    loop {
        ticks.tick().await;
        samples.take(began.elapsed().as_secs_f64(), place, processes, receiver).await?;
    }
}
