//! An experiment: load, faults, and a verdict.

mod clock;
mod columns;
mod disk;
mod fault;
mod faults;
mod place;
mod processes;
mod programs;
mod role;
mod services;
mod summary;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use fastrand::Rng;

pub use disk::keep_mounts_private;
pub use summary::Summary;

use crate::checker::check;
use crate::export::export;
use crate::load::setup::LEASE;
use crate::record::{Effect, Record, Row};
use crate::settle::{examined, is_promotion_reported, settle};
use crate::witness::{self, Witness};
use clock::Clock;
use disk::Disk;
use fault::Fault;
use faults::Faults;
use place::Place;
use processes::Processes;
use programs::Programs;
use role::Role;
use services::Services;

/// How long nothing may end after the faults have stopped, while something is open: the longest backoff, several leases, and time for a slow machine.
const SETTLE_MAX: Duration = Duration::from_secs(120);
/// The longest pause between two faults, in milliseconds.
const PAUSE_MS_MAX: u64 = 1_500;

/// How many times longer faults are injected on a slow machine, until each kind has happened.
const LONGER_MAX: u32 = 4;

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
    /// How long faults are injected, in seconds; longer until each kind has happened, at most four times as long
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Only these kinds of faults
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// The `milepost-chaos` of the version before: the load begins with it; then the store is migrated, and the processes are replaced
    #[arg(long, value_name = "PROGRAM")]
    previous: Option<PathBuf>,
    /// The file for the record, with which `check` repeats the verdict
    #[arg(long)]
    pub record: Option<PathBuf>,
}

impl ExperimentArgs {
    /// Returns the kinds of faults that the store can have, of those that were chosen.
    fn faults(&self) -> Vec<Fault> {
        let has_server = self.store == StoreKind::Postgres;
        let is_chosen = |fault: &Fault| match self.only.is_empty() {
            true => !fault.is_on_request(),
            false => self.only.contains(fault),
        };
        let can_be = |fault: &Fault| match fault {
            Fault::Roll => self.previous.is_some(),
            Fault::JumpClock => self.previous.is_none(),
            fault if fault.needs_service() => self.previous.is_none(),
            Fault::Move => !has_server,
            _ => has_server || !fault.needs_server(),
        };
        let all = Fault::value_variants().iter().copied();
        let mut faults: Vec<Fault> = all.filter(|fault| is_chosen(fault) && can_be(fault)).collect();
        if faults.iter().any(|fault| fault.needs_disk()) && !Disk::is_permitted() {
            eprintln!("No full disks and no power losses: a file system cannot be mounted from a file here.");
            faults.retain(|fault| !fault.needs_disk());
        }
        if faults.contains(&Fault::ReadOnlyDisk) && !Disk::can_become_read_only() {
            eprintln!("No read-only disks: errors of a file system cannot be made here.");
            faults.retain(|fault| *fault != Fault::ReadOnlyDisk);
        }
        if faults.contains(&Fault::RestartPooler) && !Place::can_have_pooler() {
            eprintln!("No pooler: PgBouncer is not installed (package pgbouncer).");
            faults.retain(|fault| *fault != Fault::RestartPooler);
        }
        let jumps = |fault: &Fault| matches!(fault, Fault::JumpClock | Fault::JumpServerClock);
        if faults.iter().any(jumps) && !Clock::is_installed() {
            eprintln!("No jumps of clocks: libfaketime is not installed (package faketime).");
            faults.retain(|fault| !jumps(fault));
        }
        faults
    }
}

/// Runs the experiment.
///
/// # Errors
/// When a process cannot be started, or the record cannot be written.
pub async fn run(args: &ExperimentArgs) -> Result<Summary> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let mut random = Rng::with_seed(seed);
    let faults = args.faults();
    let folder = tempfile::tempdir()?;
    let witness = Arc::new(Witness::create(folder.path(), "experiment")?);
    let clock = if faults.contains(&Fault::JumpClock) { Clock::create()? } else { None };
    let services = Services::start(&faults).await;
    let arguments = services.arguments();
    let programs = Programs::new(args.previous.clone(), folder.path().to_owned(), seed, clock, arguments)?;
    let on_disk = faults.iter().any(|fault| fault.needs_disk());
    let pooled = faults.contains(&Fault::RestartPooler);
    let clock = if faults.contains(&Fault::JumpServerClock) { Clock::create()? } else { None };
    let mut place = Place::create(args.store, on_disk, pooled, clock, services, &programs).await?;
    let mut processes = Processes::new(place.address.clone(), programs);
    if faults.contains(&Fault::Move) {
        processes.lead_to(place.address.clone(), place::OLD);
    }
    processes.start_all()?;
    let mut faults = Faults::new(faults, witness.clone());
    let (began, planned) = (Instant::now(), Duration::from_secs(args.seconds));
    while began.elapsed() < planned || (!faults.have_all_happened() && began.elapsed() < planned * LONGER_MAX)
    {
        tokio::time::sleep(Duration::from_millis(random.u64(100..PAUSE_MS_MAX))).await;
        faults.inject(&mut random, &mut processes, &mut place).await?;
    }
    faults.resume_all(&mut processes).await?;
    place.start_what_is_down().await;
    let mut failed = processes.finish(&Role::CLIENTS).await;
    let settled = settle(place.home.store().as_ref(), &witness, SETTLE_MAX).await;
    failed.extend(processes.until_ready().await);
    for roles in [Role::WORKERS.as_slice(), &[Role::Reader], &[Role::Server]] {
        failed.extend(processes.finish(roles).await);
    }
    let mut record = record(&place, folder.path()).await?;
    record.rows.extend(faults.losses().iter().cloned().map(Row::Loss));
    if faults.contain(Fault::Prune) {
        record.rows.push(Row::Retention);
    }
    if faults.set_clock_of(args.store) {
        forget_times(&mut record);
    }
    if let Some(path) = &args.record {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        record.write(BufWriter::new(file))?;
    }
    failed
        .extend(examined(&place.home.store()).await.into_iter().map(|finding| format!("doctor: {finding}")));
    if !faults.losses().is_empty() && !is_promotion_reported(&place.home.store()).await {
        failed.push("the doctor does not report that commits can be lost".to_owned());
    }
    Ok(Summary::new(seed, args.store, faults, settled, failed, &record, check(&record)))
}

async fn record(place: &Place, folder: &Path) -> Result<Record> {
    let mut record = witness::read(folder)?;
    export(place.home.as_ref(), &mut record).await?;
    place.services.export(&mut record).await?;
    Ok(record)
}

/// Removes what the clock of the store decides: while it is ahead, leases expire, and every time in the store is wrong.
fn forget_times(record: &mut Record) {
    for row in &mut record.rows {
        match row {
            Row::Change(change) => change.ready_at_ms = None,
            Row::Task(task) => task.after.clear(),
            _ => {}
        }
    }
    record.rows.retain(|row| !matches!(row, Row::Rate { .. } | Row::GroupLimit { .. }));
    record.effects.retain(|effect| !matches!(effect, Effect::Began { .. } | Effect::Finished { .. }));
}

/// The time for which a process is stopped: longer than its lease.
const STOPPED_FOR: Duration = LEASE.saturating_add(Duration::from_secs(1));
