//! The first part of the demo: enqueues a job for every place, runs the jobs on two worker processes, and kills one half way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::HumanCount;
use milepost::{Job, NewJob, Store};
use milepost_cli_support::store::StoreAddress;
use milepost_core::worker::WorkerView;

use super::bar::Bar;
use super::ledger::{Ledger, Scope};
use super::places::{self, Place};
use super::plan::Plan;
use super::process::WorkerProcess;
use super::worker::LEASE;

/// The number of jobs in one enqueue call.
const BATCH: usize = 1000;
/// The maximum number of concurrent enqueue calls.
const CALLS_MAX: usize = 4;
/// The polling interval of the number of notifications.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The polling interval for whether the dead worker's jobs were reclaimed.
const RESCUE_LOOK_EVERY: Duration = Duration::from_millis(250);
/// The interval at which remaining jobs are counted, which takes a scan. They are counted more often near the end.
const COUNT_EVERY: Duration = Duration::from_secs(5);
const COUNT_EVERY_AT_THE_END: Duration = Duration::from_millis(100);
/// The maximum time without progress before the demo fails.
const STALL_MAX: Duration = Duration::from_secs(60);

/// The inputs of the first part.
pub(super) struct Show<'a> {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) address: &'a StoreAddress,
    pub(super) scope: &'a Scope,
    pub(super) plan: Plan,
}

/// Observations that the database does not contain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) enqueue: Duration,
    pub(super) run: Duration,
    /// The number of jobs that the killed worker held in the database when it was suspended.
    pub(super) held: u64,
}

impl Show<'_> {
    /// Runs everything from the first enqueue to the end of the last job.
    pub(super) async fn perform(&self) -> Result<Seen> {
        // The queue is paused until both workers have started, so that both get jobs.
        self.ledger.store().pause_queue(&self.scope.queue, true).await?;
        let enqueue = self.enqueue().await?;
        let (run, held) = self.run().await?;
        Ok(Seen { enqueue, run, held })
    }

    async fn enqueue(&self) -> Result<Duration> {
        let began = Instant::now();
        let store = &self.ledger.store();
        let bar = &Bar::new("enqueue", self.plan.places.into());
        let mut jobs = places::all().take(self.plan.places as usize).map(|place| self.job(&place?));
        let batches = std::iter::from_fn(|| {
            let batch: Result<Vec<NewJob>> = jobs.by_ref().take(BATCH).collect();
            if batch.as_ref().is_ok_and(Vec::is_empty) { None } else { Some(batch) }
        });
        stream::iter(batches)
            .map(async |batch| {
                let enqueued = store.enqueue_many(&batch?).await?;
                bar.advance(enqueued.len() as u64);
                anyhow::Ok(())
            })
            .buffer_unordered(CALLS_MAX)
            .try_collect::<()>()
            .await?;
        let took = began.elapsed();
        let (jobs, rate) = (self.plan.places.into(), per_s(self.plan.places.into(), took));
        bar.note(format_args!("enqueued {} jobs, {} per second", HumanCount(jobs), HumanCount(rate)));
        Ok(took)
    }

    fn job(&self, place: &Place) -> Result<NewJob> {
        Ok(place.to_job()?.queue(&self.scope.queue).key(self.scope.key(place.id)))
    }

    async fn run(&self) -> Result<(Duration, u64)> {
        let mut running = Running::start(self).await?;
        let began = Instant::now();
        self.ledger.store().pause_queue(&self.scope.queue, false).await?;
        running.watch().await?;
        let took = began.elapsed();
        running.finish().await.map(|held| (took, held))
    }
}

/// The second phase: two workers, one of which is killed.
struct Running<'a> {
    show: &'a Show<'a>,
    store: Arc<dyn Store>,
    bar: Bar,
    /// The worker that is killed half way.
    victim: Option<WorkerProcess>,
    survivor: WorkerProcess,
    killed: Option<Killed>,
    /// The number of notifications of earlier runs.
    written_before: i64,
}

/// A killed worker.
struct Killed {
    name: String,
    at: Instant,
    held: u64,
    /// Whether it was declared dead and its jobs were reclaimed.
    taken_back: bool,
}

impl<'a> Running<'a> {
    async fn start(show: &'a Show<'a>) -> Result<Self> {
        let spawn = |number| WorkerProcess::spawn(number, show.address, show.scope, show.plan);
        let mut running = Self {
            show,
            store: show.ledger.store(),
            bar: Bar::new("run", show.plan.notified().count() as u64),
            victim: Some(spawn(1)?),
            survivor: spawn(2)?,
            killed: None,
            written_before: show.ledger.written().await?,
        };
        running.bar.say("starting two worker processes");
        let began = Instant::now();
        while running.workers().await?.len() < 2 {
            running.check()?;
            if began.elapsed() > STALL_MAX {
                bail!("the worker processes did not register within {STALL_MAX:?}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(running)
    }

    /// Waits until all jobs have ended.
    async fn watch(&mut self) -> Result<()> {
        let began = Instant::now();
        let all = self.show.plan.notified().count() as u64;
        let (mut done, mut moved_at) = (0, began);
        let (mut looked_at, mut counted_at) = (began, began);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.check()?;
            let seen = self.done().await?;
            if seen > done {
                (done, moved_at) = (seen, Instant::now());
            } else if moved_at.elapsed() > STALL_MAX {
                bail!("no place was notified for {STALL_MAX:?}; {} of {all} were", HumanCount(done));
            }
            self.show_progress(done, began);
            if done * 2 >= all && self.victim.is_some() {
                self.kill_while_busy().await?;
            }
            if looked_at.elapsed() >= RESCUE_LOOK_EVERY {
                looked_at = Instant::now();
                self.look_for_rescue().await?;
            }
            let count_every = if done < all { COUNT_EVERY } else { COUNT_EVERY_AT_THE_END };
            if counted_at.elapsed() >= count_every {
                counted_at = Instant::now();
                if self.show.ledger.open_jobs(&self.show.scope.queue).await? == 0 {
                    return self.look_for_rescue().await;
                }
            }
        }
    }

    /// Returns the approximate number of notified places.
    async fn done(&self) -> Result<u64> {
        let written = self.show.ledger.written().await? - self.written_before;
        Ok(u64::try_from(written).unwrap_or(0))
    }

    fn show_progress(&self, done: u64, began: Instant) {
        self.bar.reached(done);
        let workers = match &self.killed {
            None => "two workers",
            Some(killed) if killed.taken_back => "worker 2 alone",
            Some(_) => "worker 1 killed",
        };
        self.bar.say(format!("{}/s, {workers}", HumanCount(per_s(done, began.elapsed()))));
    }

    /// Kills the victim, unless it holds no jobs.
    async fn kill_while_busy(&mut self) -> Result<()> {
        let Some(victim) = self.victim.take() else { return Ok(()) };
        victim.freeze_and_settle().await?;
        // Counted before the kill and not again: on a slow machine the other worker may have reclaimed its jobs by then.
        let held = self.held_by(&victim.name).await?;
        if held == 0 {
            victim.thaw()?;
            self.victim = Some(victim);
            return Ok(());
        }
        let (name, pid) = (victim.name.clone(), victim.pid());
        victim.kill().await?;
        self.bar.note(format_args!("half way: killed {name} (process {pid}), which held {held} jobs"));
        self.killed = Some(Killed { name, at: Instant::now(), held, taken_back: false });
        Ok(())
    }

    /// Reports when the dead worker's lease has expired and its jobs were reclaimed.
    async fn look_for_rescue(&mut self) -> Result<()> {
        let Some(killed) = self.killed.as_ref().filter(|killed| !killed.taken_back) else {
            return Ok(());
        };
        // On a slow machine, a process may have lost a lease before and registered again.
        let workers = self.workers().await?.into_iter();
        let mut its = workers.filter(|worker| worker.name == killed.name);
        let dead = its.all(|worker| worker.died && worker.running == 0);
        if let Some(killed) = self.killed.as_mut().filter(|_| dead) {
            killed.taken_back = true;
            self.bar.note(format_args!(
                "{:.1} s later: its lease of {} s has expired, worker 2 took its jobs back",
                killed.at.elapsed().as_secs_f64(),
                LEASE.as_secs()
            ));
        }
        Ok(())
    }

    async fn held_by(&self, name: &str) -> Result<u64> {
        let held = self.workers().await?.into_iter().filter(|worker| worker.name == name);
        Ok(held.map(|worker| worker.running.cast_unsigned()).sum())
    }

    /// Returns the workers of this demo.
    async fn workers(&self) -> Result<Vec<WorkerView>> {
        let mut workers = self.store.workers().await?;
        workers.retain(|worker| worker.queues.contains(&self.show.scope.queue));
        Ok(workers)
    }

    fn check(&mut self) -> Result<()> {
        self.victim.as_mut().map_or(Ok(()), WorkerProcess::check)?;
        self.survivor.check()
    }

    /// Stops the remaining workers; returns the number of jobs that the killed one held.
    async fn finish(self) -> Result<u64> {
        self.bar.say("ending the worker");
        for worker in self.victim.into_iter().chain([self.survivor]) {
            worker.finish().await?;
        }
        Ok(self.killed.map_or(0, |killed| killed.held))
    }
}

/// Returns a rate per second.
pub(super) fn per_s(count: u64, duration: Duration) -> u64 {
    count * 1000 / u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}
