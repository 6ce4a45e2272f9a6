//! The third part of the demo: runs a batch of programs on three worker processes, one of which is killed.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::HumanCount;
use milepost::{JobState, Store, WorkerId, WorkerView};
use milepost_cli_support::output;
use milepost_cli_support::store::StoreAddress;
use milepost_core::batch::listing::{BatchView, TaskFilter};
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use serde::Deserialize;
use tokio::process::Command;

use super::facts::{self, Facts};
use super::folder::Folder;
use super::totals::{self, Total};
use super::verify::{Report, verify};
use super::{DAG, queue};
use crate::bar::Bar;
use crate::ledger::Scope;
use crate::places;
use crate::plan::Plan;
use crate::process::WorkerProcess;
use crate::verify::Check;
use crate::worker::LEASE;

/// The numbers of the worker processes; the first of them is killed.
const WORKERS: std::ops::RangeInclusive<u32> = 5..=7;
/// The number of the process for jobs that the user retries later.
const WORKER_AT_THE_END: u32 = 9;
/// The process is killed when one country in this many is done.
const KILL_AT: u64 = 3;
/// The polling interval of the batch.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The maximum time without progress before the demo fails.
const STALL_MAX: Duration = Duration::from_secs(60);
/// The number of countries that the summary names.
const NAMED: usize = 3;

/// The results of the checks, and the folder with the programs, which is deleted with this value.
pub(crate) struct Settled {
    pub(crate) checks: Vec<Check>,
    folder: Folder,
}

impl Settled {
    /// Starts another process that runs the programs.
    pub(crate) fn worker(&self, address: &StoreAddress, scope: &Scope) -> Result<WorkerProcess> {
        WorkerProcess::spawn_in(WORKER_AT_THE_END, address, &queue(scope), self.folder.path())
    }
}

/// Runs this part of the demo; returns `None` if the programs cannot run on this machine.
pub(crate) async fn perform(
    store: Arc<dyn Store>,
    address: &StoreAddress,
    scope: &Scope,
    plan: Plan,
) -> Result<Option<Settled>> {
    if !programs_run().await {
        output::note("the batch is skipped: its programs need sh and awk, which are not available");
        return Ok(None);
    }
    let expected = totals::of(places::spread(plan.places))?;
    let countries = expected.len() as u64;
    let folder = Folder::make(plan)?;
    output::note(format_args!(
        "a batch: {} places by country, one program for each of {countries}, then a report",
        HumanCount(plan.places.into())
    ));
    let dag = folder.dag(&queue(scope))?;
    let version = store.define_dag(&dag).await?.version.version;
    let batch = NewBatch::new(DAG, &folder.input())?.key(&scope.queue).version(version);
    let spawn = |number| WorkerProcess::spawn_in(number, address, &queue(scope), folder.path());
    let mut stage = Stage {
        store: store.as_ref(),
        folder: &folder,
        batch: batch.id,
        items: None,
        queue: queue(scope),
        countries,
        workers: WORKERS.map(spawn).collect::<Result<_>>()?,
        killed: None,
        bar: Bar::new("batch", countries),
    };
    stage.until_workers_are_there().await?;
    store.start_batch(&batch).await?;
    let held = stage.run().await?;
    let lines = totals::read(&folder.totals()?)?;
    tell(&lines);
    let report = Report {
        places: lines.iter().map(|(_, total)| total.places).sum(),
        places_expected: plan.places.into(),
        wrong: totals::wrong(&lines, &expected),
    };
    let facts = Facts::read(store.as_ref(), batch.id, &dag).await?;
    Ok(Some(Settled { checks: verify(&facts, report, countries, held), folder }))
}

/// Returns whether `sh` and `awk`, which the programs need, are available.
async fn programs_run() -> bool {
    let mut command = Command::new("sh");
    command
        .args(["-c", "awk 'BEGIN { exit }'"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// Prints a summary of the totals.
fn tell(lines: &[(String, Total)]) {
    let told = |(country, total): &(String, Total)| format!("{country} ({})", HumanCount(total.places));
    let most: Vec<String> = lines.iter().take(NAMED).map(told).collect();
    output::note(format_args!("the report is written; most places are in {}", most.join(", ")));
}

/// A killed worker.
struct Killed {
    /// All worker ids of its process: on a slow machine it may have lost a lease and registered again.
    ids: Vec<WorkerId>,
    at: Instant,
    held: u64,
    /// Whether it was declared dead and its tasks were reclaimed.
    taken_back: bool,
}

/// The batch and its workers.
struct Stage<'a> {
    store: &'a dyn Store,
    folder: &'a Folder,
    batch: BatchId,
    /// The inner batch of the countries, once it exists.
    items: Option<BatchId>,
    queue: String,
    countries: u64,
    /// The worker processes; until one was killed, the first one is the victim.
    workers: Vec<WorkerProcess>,
    killed: Option<Killed>,
    bar: Bar,
}

#[derive(Deserialize)]
struct Payload {
    country: String,
}

impl Stage<'_> {
    async fn until_workers_are_there(&mut self) -> Result<()> {
        self.bar.say("starting three worker processes");
        let began = Instant::now();
        while self.registered().await?.len() < self.workers.len() {
            self.rest(began, "the worker processes did not register").await?;
        }
        Ok(())
    }

    /// Runs until the batch is done; returns the number of tasks that the killed worker was running.
    async fn run(mut self) -> Result<u64> {
        let (mut moved_at, mut ended_before) = (Instant::now(), 0);
        loop {
            let batch = facts::view(self.store, self.batch).await?;
            let done = self.countries_done().await?;
            self.show(done).await?;
            if self.killed.is_none() && done * KILL_AT >= self.countries {
                self.kill_while_busy().await?;
            }
            self.look_for_rescue().await?;
            match batch.state {
                BatchState::Done => return self.finish().await,
                BatchState::Running => {}
                _ => return self.fail(&batch).await,
            }
            let ended = batch.counts.ended() + done;
            if ended > ended_before {
                (ended_before, moved_at) = (ended, Instant::now());
            }
            self.rest(moved_at, "no task of the batch ended").await?;
        }
    }

    async fn countries_done(&mut self) -> Result<u64> {
        if self.items.is_none() {
            self.items = facts::items(self.store, self.batch).await?;
        }
        match self.items {
            Some(items) => Ok(facts::view(self.store, items).await?.counts.succeeded),
            None => Ok(0),
        }
    }

    /// Updates the bar with the active tasks and the workers.
    async fn show(&self, done: u64) -> Result<()> {
        let active = TaskFilter { states: vec![TaskState::Active], ..TaskFilter::default() };
        let tasks = self.store.batch_tasks(self.batch, &active).await?;
        let tasks: Vec<String> = tasks.into_iter().map(|task| task.key).collect();
        let workers = match &self.killed {
            None => "three workers",
            Some(killed) if killed.taken_back => "two workers",
            Some(_) => "worker 5 killed",
        };
        self.bar.reached(done);
        self.bar.say(format!("{}, {workers}", tasks.join(" and ")));
        Ok(())
    }

    /// Kills the first worker, unless it is running nothing.
    async fn kill_while_busy(&mut self) -> Result<()> {
        let victim = &self.workers[0];
        victim.freeze_and_settle().await?;
        let registered = self.registered().await?.into_iter();
        let ids: Vec<_> = registered.filter(|its| its.name == victim.name).map(|its| its.id).collect();
        // Read before the kill and not again: on a slow machine other workers may have reclaimed its tasks by then.
        let held = self.held_by(&ids).await?;
        if held.is_empty() {
            return victim.thaw();
        }
        let victim = self.workers.remove(0);
        let (name, pid) = (victim.name.clone(), victim.pid());
        victim.kill().await?;
        self.folder.hurry()?;
        self.bar.note(format_args!(
            "a third done: killed {name} (process {pid}) while it ran {}",
            held.join(", ")
        ));
        self.killed = Some(Killed { ids, at: Instant::now(), held: held.len() as u64, taken_back: false });
        Ok(())
    }

    /// Reports when the dead worker's lease has expired and its tasks were reclaimed.
    async fn look_for_rescue(&mut self) -> Result<()> {
        let Some(killed) = self.killed.as_mut().filter(|killed| !killed.taken_back) else {
            return Ok(());
        };
        let workers = self.store.workers().await?;
        let mut its = workers.iter().filter(|worker| killed.ids.contains(&worker.id));
        if its.all(|worker| worker.died && worker.running == 0) {
            killed.taken_back = true;
            let (after, lease) = (killed.at.elapsed().as_secs_f64(), LEASE.as_secs());
            self.bar.note(format_args!(
                "{after:.1} s later: its lease of {lease} s has expired, the others took its tasks back"
            ));
        }
        Ok(())
    }

    /// Returns the countries whose programs run on this worker.
    async fn held_by(&self, worker: &[WorkerId]) -> Result<Vec<String>> {
        let Some(items) = self.items else { return Ok(Vec::new()) };
        let active = TaskFilter { states: vec![TaskState::Active], ..TaskFilter::default() };
        let tasks = self.store.batch_tasks(items, &active).await?;
        let running = tasks.into_iter().filter(|task| task.job_state == Some(JobState::Running));
        let mut held = Vec::new();
        for job in running.filter_map(|task| task.job) {
            let job = self.store.job(job).await?.with_context(|| format!("job {job} no longer exists"))?;
            if job.row.worker.is_some_and(|its| worker.contains(&its)) {
                held.push(serde_json::from_str::<Payload>(job.payload.get())?.country);
            }
        }
        Ok(held)
    }

    /// Returns the workers of this demo.
    async fn registered(&self) -> Result<Vec<WorkerView>> {
        let mut workers = self.store.workers().await?;
        workers.retain(|worker| worker.queues.contains(&self.queue));
        Ok(workers)
    }

    async fn rest(&mut self, since: Instant, stall: &str) -> Result<()> {
        if since.elapsed() > STALL_MAX {
            bail!("{stall} for {STALL_MAX:?}");
        }
        self.workers.iter_mut().try_for_each(WorkerProcess::check)?;
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }

    /// Stops the remaining workers.
    async fn finish(self) -> Result<u64> {
        self.bar.say("ending the workers");
        for worker in self.workers {
            worker.finish().await?;
        }
        Ok(self.killed.map_or(0, |killed| killed.held))
    }

    /// Returns an error with the reasons why the batch is not done.
    async fn fail(&self, batch: &BatchView) -> Result<u64> {
        let failed = TaskFilter { states: vec![TaskState::Failed], ..TaskFilter::default() };
        let mut why = Vec::new();
        for batch in [Some(self.batch), self.items].into_iter().flatten() {
            let tasks = self.store.batch_tasks(batch, &failed).await?;
            why.extend(tasks.into_iter().filter_map(|task| Some(format!("{}: {}", task.key, task.error?))));
        }
        bail!("batch {} is {}, not done\n{}", batch.id, batch.state, why.join("\n"))
    }
}
