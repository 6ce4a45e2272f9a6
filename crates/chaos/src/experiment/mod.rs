//! An experiment: load, faults, and a verdict.

mod export;
mod faults;
mod processes;
mod summary;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use fastrand::Rng;
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::Store;
use milepost_core::state::JobState;
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::server::Server;

pub use summary::Summary;

use crate::checker::check;
use crate::load::{GROUPS, LEASE, RATE, RATED};
use crate::record::{Record, Row};
use crate::witness;
use faults::Faults;
use processes::Processes;

/// How long everything may take to end after the faults have stopped: the longest backoff, several leases, and time for a slow machine.
const SETTLE_MAX: Duration = Duration::from_secs(120);
/// The longest pause between two faults, in milliseconds.
const PAUSE_MS_MAX: u64 = 1_500;
/// The interval at which the end of everything is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The store under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// A SQLite file
    Sqlite,
    /// A PostgreSQL server of its own
    Postgres,
}

/// What to do.
#[derive(Clone, Debug, Args)]
pub struct ExperimentArgs {
    /// The store under test
    #[arg(long, value_enum, default_value = "sqlite")]
    pub store: StoreKind,
    /// The seed of faults and load; a random one if it is missing
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long faults are injected, in seconds
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// The file for the record, with which `check` repeats the verdict
    #[arg(long)]
    pub record: Option<PathBuf>,
}

/// The store under test, with its server if it has one.
struct Place {
    home: Box<dyn Home>,
    server: Option<Server>,
    /// The address for other processes.
    address: String,
}

impl Place {
    async fn create(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Sqlite => {
                let home = SqliteHome::fresh().await;
                let address = home.address();
                Self { home: Box::new(home), server: None, address }
            }
            StoreKind::Postgres => {
                let server = Server::create().await;
                let home = PostgresHome::create_at(&server.url()).await;
                let address = home.address();
                Self { home: Box::new(home), server: Some(server), address }
            }
        }
    }
}

/// Runs the experiment.
///
/// # Errors
/// When a process cannot be started, or the record cannot be written.
pub async fn run(args: &ExperimentArgs) -> Result<Summary> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let mut random = Rng::with_seed(seed);
    let place = Place::create(args.store).await;
    limit(place.home.store().as_ref()).await?;
    let folder = tempfile::tempdir()?;
    let mut processes = Processes::new(place.address.clone(), folder.path().to_owned(), seed);
    processes.start_all()?;
    let mut faults = Faults::default();
    let until = Instant::now() + Duration::from_secs(args.seconds);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(random.u64(100..PAUSE_MS_MAX))).await;
        faults.inject(&mut random, &mut processes, place.server.as_ref()).await?;
    }
    faults.stop(&mut processes).await?;
    processes.finish_clients().await?;
    let settled = settle(place.home.store(), folder.path()).await;
    processes.finish_workers().await?;
    let record = record(&place, folder.path()).await?;
    if let Some(path) = &args.record {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        record.write(BufWriter::new(file))?;
    }
    let findings = milepost_testkit::examine::examine(&place.home.store()).await;
    let findings = findings.iter().map(|finding| format!("{finding:?}")).collect();
    Ok(Summary::new(seed, args.store, faults, settled, findings, &record, check(&record)))
}

/// Sets the limits of groups and of a kind.
async fn limit(store: &dyn Store) -> Result<()> {
    for (group, slots) in GROUPS {
        store.put_limit(&Limit::group(group).slots(slots), Source::Operator).await?;
    }
    let (per_s, burst) = RATE;
    store.put_limit(&Limit::kind(RATED, Rate::new(per_s, burst)), Source::Operator).await?;
    Ok(())
}

/// Waits until every job has ended and every event was delivered. Returns how long that took; none if it did not happen in time.
async fn settle(store: Arc<dyn Store>, folder: &Path) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < SETTLE_MAX {
        if is_settled(store.as_ref()).await {
            // Everything that was delivered is in the files.
            let _ = witness::read(folder);
            return Some(began.elapsed());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    None
}

async fn is_settled(store: &dyn Store) -> bool {
    let Ok(counts) = store.count_by_state().await else { return false };
    let open = |state: JobState| state.is_waiting() || matches!(state, JobState::Running | JobState::Blocked);
    let jobs: i64 = counts.iter().filter(|(state, _)| open(*state)).map(|(_, count)| count).sum();
    let Ok(subscriptions) = store.subscriptions().await else { return false };
    let events: i64 = subscriptions.iter().map(|subscription| subscription.backlog).sum();
    jobs == 0 && events == 0
}

async fn record(place: &Place, folder: &Path) -> Result<Record> {
    let mut record = witness::read(folder)?;
    record.rows = export::rows(place.home.as_ref()).await?;
    for (group, slots) in GROUPS {
        record.rows.push(Row::GroupLimit { group: group.to_owned(), slots: slots as usize });
    }
    let (per_s, burst) = RATE;
    record.rows.push(Row::Rate { kind: RATED.to_owned(), per_s, burst });
    Ok(record)
}

/// The time for which a process is stopped: longer than its lease.
const STOPPED_FOR: Duration = LEASE.saturating_add(Duration::from_secs(1));
