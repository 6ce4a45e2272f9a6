//! Faults, chosen by the seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use fastrand::Rng;

use super::STOPPED_FOR;
use super::place::{Database, Place};
use super::processes::{Processes, Role};
use crate::record::Loss;
use crate::witness::Witness;

/// The longest time whose commits are lost, in milliseconds.
const LAG_MS_MAX: u64 = 1_000;
/// How far the clock is set at most, in seconds, and how long it stays so at most, in milliseconds.
const JUMP_S_MAX: i64 = 20;
const JUMPED_MS_MAX: u64 = 3_000;

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
    /// All places for connections are taken for a while.
    LimitConnections,
    /// Statements and transactions time out after a few milliseconds for a while.
    TimeOutSessions,
    /// The loss of the database server; a standby is promoted that lacks its last commits. Only if it is asked for.
    FailOverAsync,
    /// A restore of the database server to a moment in the past. Only if it is asked for.
    Restore,
    /// A dump of the database, restored on a new server. Only if it is asked for.
    DumpAndRestore,
    /// SIGKILL of the pooler between processes and server, and a start. Only if it is asked for.
    RestartPooler,
    /// The clock of all processes is set forwards or back for a while. Only if it is asked for.
    JumpClock,
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
            Self::LimitConnections => "times all places for connections taken",
            Self::TimeOutSessions => "times statements and transactions timed out",
            Self::FailOverAsync => "failovers to an asynchronous standby",
            Self::Restore => "restores to a moment in the past",
            Self::DumpAndRestore => "dumps restored on a new server",
            Self::RestartPooler => "poolers killed",
            Self::JumpClock => "times the clock was set",
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
                | Self::LimitConnections
                | Self::TimeOutSessions
                | Self::FailOverAsync
                | Self::Restore
                | Self::DumpAndRestore
                | Self::RestartPooler
        )
    }

    /// Returns whether it happens only if it is asked for: it removes facts that others need (commits, the times of the store), needs other
    /// connections, or takes long.
    pub(super) const fn is_on_request(self) -> bool {
        self.loses_commits() || matches!(self, Self::DumpAndRestore | Self::RestartPooler | Self::JumpClock)
    }

    /// Returns whether acknowledged calls can be lost by it.
    pub(super) const fn loses_commits(self) -> bool {
        matches!(self, Self::FailOverAsync | Self::Restore)
    }
}

/// The faults that were injected.
pub(super) struct Faults {
    /// The kinds that are injected.
    kinds: Vec<Fault>,
    count: BTreeMap<Fault, u32>,
    /// The faults that follow. Each kind happens once before one happens again.
    next: Vec<Fault>,
    /// Stopped processes, with the time at which they continue.
    stopped: Vec<(u32, Instant)>,
    /// What was lost.
    losses: Vec<Loss>,
    witness: Arc<Witness>,
}

impl Faults {
    pub(super) const fn new(kinds: Vec<Fault>, witness: Arc<Witness>) -> Self {
        Self {
            kinds,
            count: BTreeMap::new(),
            next: Vec::new(),
            stopped: Vec::new(),
            losses: Vec::new(),
            witness,
        }
    }

    /// Returns whether the clock of the processes is set.
    pub(super) fn sets_clock(&self) -> bool {
        self.kinds.contains(&Fault::JumpClock)
    }

    /// Returns what was lost.
    pub(super) fn losses(&self) -> &[Loss] {
        &self.losses
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
        let is_done = self.inject_kind(fault, random, processes, place).await?;
        *self.count.entry(fault).or_default() += u32::from(is_done);
        Ok(())
    }

    /// Injects a fault of this kind. Returns false if it cannot happen now.
    async fn inject_kind(
        &mut self,
        fault: Fault,
        random: &mut Rng,
        processes: &mut Processes,
        place: &mut Place,
    ) -> Result<bool> {
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
            Fault::FailOverAsync | Fault::Restore => {
                self.lose_commits(fault, random, processes, place).await?
            }
            Fault::DumpAndRestore => {
                self.stopped.clear();
                place.dump_and_restore(processes).await?
            }
            Fault::RestartPooler => place.restart_pooler().await?,
            Fault::JumpClock => jump_clock(random, processes).await?,
            Fault::CrashServer
            | Fault::KillBackends
            | Fault::CutNetwork
            | Fault::SilenceNetwork
            | Fault::LoseAnswers
            | Fault::LimitConnections
            | Fault::TimeOutSessions => match &place.database {
                Some(database) => {
                    of_database(fault, database).await?;
                    true
                }
                None => false,
            },
        };
        Ok(is_done)
    }

    /// Loses the commits of a short time, and notes which ones.
    async fn lose_commits(
        &mut self,
        fault: Fault,
        random: &mut Rng,
        processes: &mut Processes,
        place: &mut Place,
    ) -> Result<bool> {
        let number = u32::try_from(self.losses.len() + 1)?;
        let lag = Duration::from_millis(random.u64(..LAG_MS_MAX));
        let loss = if fault == Fault::Restore {
            self.stopped.clear();
            place.restore(processes, lag, &self.witness, number).await?
        } else {
            place.fail_over_async(lag, &self.witness, number).await?
        };
        let is_done = loss.is_some();
        self.losses.extend(loss);
        Ok(is_done)
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
        Fault::LimitConnections => database.limit_connections().await?,
        Fault::TimeOutSessions => database.time_out_sessions().await?,
        _ => database.lose_answers().await,
    }
    Ok(())
}

/// Sets the clock that the processes see forwards or back, and after a while to the right time. Returns false if they see that of the machine.
async fn jump_clock(random: &mut Rng, processes: &Processes) -> Result<bool> {
    let Some(clock) = processes.clock() else { return Ok(false) };
    clock.set(random.i64(-JUMP_S_MAX..=JUMP_S_MAX))?;
    tokio::time::sleep(Duration::from_millis(random.u64(..JUMPED_MS_MAX))).await;
    clock.set(0)?;
    Ok(true)
}
