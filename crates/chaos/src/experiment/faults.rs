//! Faults, chosen by the seed.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use fastrand::Rng;

use super::STOPPED_FOR;
use super::place::{Database, Place};
use super::processes::{Processes, Role};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// SIGKILL of a worker; another one starts.
    KillWorker,
    /// SIGSTOP of a worker for longer than its lease.
    StopWorker,
    /// SIGKILL of a client; another one starts.
    KillClient,
    /// SIGKILL of the reader; another one starts.
    KillReader,
    /// An immediate shutdown of the database server, and a start.
    CrashServer,
    /// The loss of the database server; its synchronous standby is promoted.
    FailOver,
    /// The end of all connections by the server.
    KillBackends,
    /// All connections are cut, and new ones are refused for a while.
    CutNetwork,
    /// The existing connections stay open, but nothing passes any more.
    SilenceNetwork,
    /// Requests reach the server, answers are lost for a while.
    LoseAnswers,
    /// A disk without free space for a while.
    FillDisk,
    /// Columns are added to all tables, as the migration of a newer version does.
    AddColumns,
    /// A process is replaced by one of the other version, as a rolling upgrade does. The store is migrated before the first one.
    Roll,
    /// The loss of power: everything that was not synchronized is lost, and all processes end.
    LosePower,
}

impl Fault {
    /// Returns its name.
    #[must_use]
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::KillWorker => "workers killed",
            Self::StopWorker => "workers stopped beyond their lease",
            Self::KillClient => "clients killed",
            Self::KillReader => "readers killed",
            Self::CrashServer => "database servers crashed",
            Self::FailOver => "failovers",
            Self::KillBackends => "times all connections ended by the server",
            Self::CutNetwork => "times all connections cut",
            Self::SilenceNetwork => "times all connections silenced",
            Self::LoseAnswers => "times answers lost",
            Self::FillDisk => "times the disk was full",
            Self::AddColumns => "times columns added to all tables",
            Self::Roll => "processes replaced by one of the other version",
            Self::LosePower => "power losses",
        }
    }

    /// Returns whether it needs a disk of its own.
    pub(super) const fn needs_disk(self) -> bool {
        matches!(self, Self::FillDisk | Self::LosePower)
    }

    /// Returns whether a process can lose runs by it.
    pub(super) const fn is_gentle(self) -> bool {
        matches!(self, Self::AddColumns | Self::Roll | Self::KillClient | Self::KillReader)
    }

    /// Returns whether only a store with a server can have it.
    pub(super) const fn needs_server(self) -> bool {
        matches!(
            self,
            Self::CrashServer
                | Self::FailOver
                | Self::KillBackends
                | Self::CutNetwork
                | Self::SilenceNetwork
                | Self::LoseAnswers
        )
    }
}

/// The faults that were injected.
#[derive(Debug)]
pub(super) struct Faults {
    /// The kinds that are injected.
    kinds: Vec<Fault>,
    count: BTreeMap<Fault, u32>,
    /// The faults that follow. Each kind happens once before one happens again.
    next: Vec<Fault>,
    /// Stopped processes, with the time at which they continue.
    stopped: Vec<(u32, Instant)>,
}

impl Faults {
    pub(super) const fn new(kinds: Vec<Fault>) -> Self {
        Self { kinds, count: BTreeMap::new(), next: Vec::new(), stopped: Vec::new() }
    }

    /// Injects one fault.
    pub(super) async fn inject(
        &mut self,
        random: &mut Rng,
        processes: &mut Processes,
        place: &mut Place,
    ) -> Result<()> {
        self.resume(processes, Instant::now())?;
        if self.next.is_empty() {
            self.next.clone_from(&self.kinds);
            random.shuffle(&mut self.next);
        }
        let Some(fault) = self.next.pop() else { return Ok(()) };
        let is_done = match fault {
            Fault::KillWorker => processes.kill(random, Role::Worker).await?,
            Fault::KillClient => processes.kill(random, Role::Client).await?,
            Fault::KillReader => processes.kill(random, Role::Reader).await?,
            Fault::StopWorker => self.stop_worker(random, processes)?,
            Fault::FillDisk => {
                place.fill_disk().await?;
                true
            }
            Fault::AddColumns => {
                place.add_columns().await?;
                true
            }
            Fault::Roll => {
                place.migrate().await?;
                processes.roll(random).await?
            }
            Fault::LosePower => {
                place.lose_power(processes).await?;
                self.stopped.clear();
                true
            }
            Fault::FailOver => {
                place.fail_over().await?;
                true
            }
            Fault::CrashServer
            | Fault::KillBackends
            | Fault::CutNetwork
            | Fault::SilenceNetwork
            | Fault::LoseAnswers => match &place.database {
                Some(database) => {
                    of_database(fault, database).await?;
                    true
                }
                None => false,
            },
        };
        *self.count.entry(fault).or_default() += u32::from(is_done);
        Ok(())
    }

    /// Stops a worker. Returns false if it would be the last one that runs.
    fn stop_worker(&mut self, random: &mut Rng, processes: &mut Processes) -> Result<bool> {
        let stopped = processes.stop(random, Role::Worker)?;
        self.stopped.extend(stopped.map(|pid| (pid, Instant::now() + STOPPED_FOR)));
        Ok(stopped.is_some())
    }

    /// Lets all stopped processes continue.
    pub(super) async fn stop(&mut self, processes: &mut Processes) -> Result<()> {
        let last = self.stopped.iter().map(|(_, until)| *until).max();
        if let Some(last) = last {
            tokio::time::sleep_until(last.into()).await;
            self.resume(processes, last)?;
        }
        Ok(())
    }

    fn resume(&mut self, processes: &mut Processes, now: Instant) -> Result<()> {
        let (due, later) =
            std::mem::take(&mut self.stopped).into_iter().partition(|(_, until)| *until <= now);
        self.stopped = later;
        let due: Vec<(u32, Instant)> = due;
        due.into_iter().try_for_each(|(pid, _)| processes.resume(pid))
    }

    /// Returns whether each kind has happened.
    pub(super) fn have_all_happened(&self) -> bool {
        self.count().iter().all(|(_, count)| *count > 0)
    }

    /// Returns the number of faults of each kind.
    pub(super) fn count(&self) -> Vec<(Fault, u32)> {
        let kinds = self.kinds.iter().copied();
        kinds.map(|fault| (fault, self.count.get(&fault).copied().unwrap_or_default())).collect()
    }
}

/// Injects a fault of the database server or of the network before it.
async fn of_database(fault: Fault, database: &Database) -> Result<()> {
    match fault {
        Fault::CrashServer => database.crash().await,
        Fault::KillBackends => database.kill_backends().await?,
        Fault::CutNetwork => database.cut().await,
        Fault::SilenceNetwork => database.silence(),
        _ => database.lose_answers().await,
    }
    Ok(())
}
