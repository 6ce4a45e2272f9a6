//! Faults, chosen by the seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};

use super::clock::Clock;
use super::fault::Fault;
use super::place::{Database, Place};
use super::processes::Processes;
use super::role::Role;
use super::{STOPPED_FOR, StoreKind};
use crate::record::Loss;
use crate::witness::Witness;

/// The longest time whose commits are lost, in milliseconds.
const LAG_MS_MAX: u64 = 1_000;
/// The retention periods with which ended jobs are deleted.
const KEPT: RetentionPolicy =
    RetentionPolicy { succeeded: Keep::For(Duration::from_secs(2)), ..RetentionPolicy::FOREVER };
/// The largest jump of a clock, in seconds, and its longest duration, in milliseconds.
const JUMP_S_MAX: i64 = 20;
const JUMPED_MS_MAX: u64 = 3_000;

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

    /// Returns whether this kind is injected.
    pub(super) fn contain(&self, kind: Fault) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns whether the times of a store of this kind are wrong.
    pub(super) fn set_clock_of(&self, store: StoreKind) -> bool {
        self.kinds.iter().any(|kind| kind.sets_clock_of(store))
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
        if fault.waits_for_locks() {
            self.resume_all(processes).await?;
        }
        place.start_what_is_down().await;
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
        match fault {
            Fault::KillWorker
            | Fault::KillClient
            | Fault::KillReader
            | Fault::KillServer
            | Fault::StopWorker
            | Fault::StopServer => self.of_process(fault, random, processes).await,
            Fault::LosePower | Fault::ReadOnlyDisk | Fault::DumpAndRestore | Fault::UpgradeServer => {
                self.with_all_stopped(fault, processes, place).await
            }
            Fault::FailOverAsync | Fault::Restore => self.lose_commits(fault, random, processes, place).await,
            Fault::FillDisk | Fault::AddColumns | Fault::Prune | Fault::FailOver => {
                of_store(fault, place).await.map(|()| true)
            }
            Fault::Roll => {
                place.migrate().await?;
                processes.roll(random).await
            }
            Fault::RestartPooler => place.restart_pooler().await,
            Fault::JumpClock => jump(random, processes.clock()).await,
            Fault::JumpServerClock => jump(random, place.clock()).await,
            Fault::KillRedis
            | Fault::StopRedis
            | Fault::FlushRedis
            | Fault::KillBroker
            | Fault::LoseAcknowledgements => Ok(place.services.inject(fault).await),
            Fault::Move => place.move_to_database(random, processes, &self.witness).await,
            Fault::CrashServer
            | Fault::KillBackends
            | Fault::CutNetwork
            | Fault::SilenceNetwork
            | Fault::LoseAnswers
            | Fault::LimitConnections
            | Fault::TimeOutSessions => match &place.database {
                Some(database) => of_database(fault, database).await.map(|()| true),
                None => Ok(false),
            },
        }
    }

    /// Kills a process, or stops it for a while.
    async fn of_process(
        &mut self,
        fault: Fault,
        random: &mut Rng,
        processes: &mut Processes,
    ) -> Result<bool> {
        match fault {
            Fault::KillWorker => processes.kill(random, &Role::WORKERS).await,
            Fault::KillClient => processes.kill(random, &Role::CLIENTS).await,
            Fault::KillReader => processes.kill(random, &[Role::Reader]).await,
            Fault::KillServer => processes.kill(random, &[Role::Server]).await,
            Fault::StopWorker => self.stop_process(random, processes, &Role::WORKERS),
            _ => self.stop_process(random, processes, &[Role::Server]),
        }
    }

    /// Injects a fault for which all processes end and start again.
    async fn with_all_stopped(
        &mut self,
        fault: Fault,
        processes: &mut Processes,
        place: &mut Place,
    ) -> Result<bool> {
        let is_done = match fault {
            Fault::LosePower => place.lose_power(processes).await.map(|()| true),
            Fault::ReadOnlyDisk => place.make_disk_read_only(processes).await.map(|()| true),
            Fault::DumpAndRestore => place.dump_and_restore(processes).await,
            _ => place.upgrade_server(processes).await,
        };
        self.stopped.clear();
        is_done
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

    /// Stops a process with one of these roles. Returns false if it would be the last one that runs.
    fn stop_process(&mut self, random: &mut Rng, processes: &mut Processes, roles: &[Role]) -> Result<bool> {
        let stopped = processes.stop(random, roles)?;
        self.stopped.extend(stopped.map(|pid| (pid, Instant::now() + STOPPED_FOR)));
        Ok(stopped.is_some())
    }

    /// Waits until all stopped processes have continued.
    pub(super) async fn resume_all(&mut self, processes: &mut Processes) -> Result<()> {
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

/// Injects a fault of the store.
async fn of_store(fault: Fault, place: &mut Place) -> Result<()> {
    match fault {
        Fault::FillDisk => place.fill_disk().await,
        Fault::AddColumns => place.add_columns().await,
        Fault::FailOver => place.fail_over().await,
        _ => {
            place.home.store().prune(&KEPT, Pace { limit: 1_000, rest: 0 }).await?;
            Ok(())
        }
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

/// Sets a clock forwards or back, and after a while to the right time. Returns false without a clock that can be set.
async fn jump(random: &mut Rng, clock: Option<&Clock>) -> Result<bool> {
    let Some(clock) = clock else { return Ok(false) };
    clock.set(random.i64(-JUMP_S_MAX..=JUMP_S_MAX))?;
    tokio::time::sleep(Duration::from_millis(random.u64(..JUMPED_MS_MAX))).await;
    clock.set(0)?;
    Ok(true)
}
