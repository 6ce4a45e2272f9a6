//! The second part of the demo: two bulk jobs of one group at the same time, a kill, an abort, a resume.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::HumanCount;
use milepost::bulk::{BulkFilter, BulkView};
use milepost::{JobId, JobState, Operation, Verb};
use milepost_cli_support::output;
use milepost_cli_support::store::StoreAddress;
use milepost_core::actions::GRACE_DEFAULT;

use super::channels::{self, Channel, Channels};
use super::verify::verify;
use super::{Notice, Shown, World, on_sphere, queue};
use crate::bar::Bar;
use crate::ledger::Scope;
use crate::places;
use crate::plan::Plan;
use crate::process::WorkerProcess;
use crate::verify::Check;
use crate::worker::LEASE;

/// The number of channels in one transaction.
const BATCH: usize = 10_000;
/// The polling interval of the runs.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The time that a process runs between two checks whether it is in a chunk.
const BETWEEN_LOOKS: Duration = Duration::from_millis(3);
/// The maximum time without progress before the demo fails.
const STALL_MAX: Duration = Duration::from_secs(60);
/// The completed share at which the process is killed and the run aborted. Most of the run remains then: it must not end before the demo
/// has seen its progress.
const KILL_AT: f64 = 0.2;
const ABORT_AT: f64 = 0.4;

/// Runs this part of the demo and returns its checks.
pub(crate) async fn perform(address: &StoreAddress, scope: &Scope, plan: Plan) -> Result<Vec<Check>> {
    let channels = channels::open(address).await?;
    let world = World::of(plan);
    fill(channels.as_ref(), world, plan).await?;
    let show = Show { channels: channels.as_ref(), address, scope, plan, world };
    let (jobs, shown) = show.run().await?;
    let [popular, nearby] = jobs;
    let popular = channels.facts(Notice::Popular, popular, world).await?;
    let nearby = channels.facts(Notice::Nearby, nearby, world).await?;
    Ok(verify(popular, nearby, &shown))
}

/// Creates the channels, unless they exist from an earlier demo.
async fn fill(channels: &dyn Channels, world: World, plan: Plan) -> Result<()> {
    if channels.lay(world).await? == world.0 {
        return Ok(());
    }
    let bar = Bar::new("channels", world.0);
    let mut batch = Vec::with_capacity(BATCH);
    for place in places::all().take(plan.places as usize) {
        let place = place?;
        let point = on_sphere(place.lat, place.lng);
        batch.extend(world.channels_of(place.id, plan).map(|id| Channel { id, point }));
        if batch.len() >= BATCH {
            bar.advance(batch.len() as u64);
            channels.add(world, std::mem::take(&mut batch)).await?;
        }
    }
    channels.add(world, batch).await
}

struct Show<'a> {
    channels: &'a dyn Channels,
    address: &'a StoreAddress,
    scope: &'a Scope,
    plan: Plan,
    world: World,
}

impl Show<'_> {
    async fn run(&self) -> Result<([JobId; 2], Shown)> {
        let store = self.channels.store();
        let both = Notice::BOTH.map(|notice| notice.job(self.scope, self.world));
        let [popular, nearby] = both;
        let (popular, nearby) = (popular?, nearby?);
        let (popular, nearby) = tokio::join!(store.start_bulk(&popular), store.start_bulk(&nearby));
        let jobs = [popular?.job, nearby?.job];
        output::note(format_args!(
            "starting two bulk jobs of one group at the same moment, over {} channels",
            HumanCount(self.world.0)
        ));
        let spawn = |number| WorkerProcess::spawn(number, self.address, self.scope, self.plan);
        let workers = vec![spawn(3)?, spawn(4)?];
        let mut stage = Stage { show: self, jobs, workers, bar: Bar::new("bulk", self.world.0) };
        let mut shown = Shown::default();
        stage.kill().await?;
        let aborted = stage.abort(&mut shown).await?;
        stage.resume(aborted).await?;
        for job in jobs {
            stage.until(job, "succeeds", |view| view.state == JobState::Succeeded).await?;
            shown.histories.push(store.complete_history(job).await?);
        }
        for worker in stage.workers {
            worker.finish().await?;
        }
        Ok((jobs, shown))
    }
}

/// The runs and their workers.
struct Stage<'a> {
    show: &'a Show<'a>,
    jobs: [JobId; 2],
    workers: Vec<WorkerProcess>,
    bar: Bar,
}

impl Stage<'_> {
    /// Kills the process that executes the first run, in the middle of a chunk, and waits until another process resumes the run.
    async fn kill(&mut self) -> Result<()> {
        let running = self.first_running().await?;
        self.until(running, "reaches its first fifth", |view| reached(view, KILL_AT)).await?;
        let name = self.runner(running).await?;
        let at = self.workers.iter().position(|worker| worker.name == name);
        let victim =
            self.workers.swap_remove(at.with_context(|| format!("{name} is not a worker of this demo"))?);
        let pid = victim.pid();
        self.freeze_in_chunk(&victim).await?;
        victim.kill().await?;
        let before = self.view(running).await?;
        let passed = HumanCount(before.passed());
        self.bar.note(format_args!(
            "killed {name} (process {pid}) in the middle of a chunk of {}, at {passed}",
            before.name
        ));
        let killed_at = Instant::now();
        let goes_on = |view: &BulkView| view.counts.chunks > before.counts.chunks || view.state.is_ended();
        self.until(running, "is taken over", goes_on).await?;
        self.bar.note(format_args!(
            "{:.1} s later: its lease of {} s has expired, the other process continued from the cursor",
            killed_at.elapsed().as_secs_f64(),
            LEASE.as_secs()
        ));
        Ok(())
    }

    /// Suspends a process in the middle of a chunk.
    async fn freeze_in_chunk(&self, worker: &WorkerProcess) -> Result<()> {
        let began = Instant::now();
        loop {
            worker.freeze()?;
            if self.show.channels.is_in_chunk().await? {
                return Ok(());
            }
            worker.thaw()?;
            if began.elapsed() > STALL_MAX {
                bail!("{} started no chunk for {STALL_MAX:?}", worker.name);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Aborts the active run and returns its id.
    async fn abort(&mut self, shown: &mut Shown) -> Result<JobId> {
        let running = self.first_running().await?;
        self.until(running, "reaches its second fifth", |view| reached(view, ABORT_AT)).await?;
        let store = self.show.channels.store();
        store.operate(running, &Operation::new(Verb::Abort).grace(GRACE_DEFAULT).note("by the demo")).await?;
        let told = self.view(running).await?;
        let aborted = self.until(running, "is aborted", |view| view.state == JobState::Aborted).await?;
        // Waits until the other run has started: the aborted run commits no chunk after that.
        let other = self.other(running);
        self.until(other, "begins", |view| view.counts.chunks > 0).await?;
        let at_last = self.view(running).await?;
        shown.chunks_after_abort = at_last.counts.chunks - told.counts.chunks;
        shown.aborted_at = at_last.passed();
        shown.aborted_of = aborted.total.map_or(0, |total| total.rows);
        let passed = HumanCount(shown.aborted_at);
        self.bar.note(format_args!("aborted {} at {passed}; the waiting run starts now", aborted.name));
        Ok(running)
    }

    async fn resume(&mut self, job: JobId) -> Result<()> {
        self.show.channels.store().operate(job, &Operation::new(Verb::Resume)).await?;
        let view = self.view(job).await?;
        self.bar.note(format_args!("resumed {}: it continues when the group is free", view.name));
        Ok(())
    }

    /// Returns the active run.
    async fn first_running(&mut self) -> Result<JobId> {
        let began = Instant::now();
        loop {
            for job in self.jobs {
                if self.view(job).await?.state == JobState::Running {
                    return Ok(job);
                }
            }
            self.rest(began, "no run has begun").await?;
        }
    }

    async fn until(&mut self, job: JobId, what: &str, so: impl Fn(&BulkView) -> bool) -> Result<BulkView> {
        let (mut moved_at, mut passed) = (Instant::now(), None);
        loop {
            let view = self.view(job).await?;
            self.bar.reached(view.passed());
            self.bar.say(view.name.clone());
            if so(&view) {
                return Ok(view);
            }
            if matches!(view.state, JobState::Failed | JobState::Canceled) {
                bail!("bulk job {} became {} before it {what}", view.name, view.state);
            }
            if passed != Some(view.passed()) {
                (moved_at, passed) = (Instant::now(), Some(view.passed()));
            }
            self.rest(
                moved_at,
                &format!("bulk job {} makes no progress; expected that it {what}", view.name),
            )
            .await?;
        }
    }

    async fn rest(&mut self, since: Instant, stall: &str) -> Result<()> {
        if since.elapsed() > STALL_MAX {
            bail!("{stall}, for {STALL_MAX:?}");
        }
        self.workers.iter_mut().try_for_each(WorkerProcess::check)?;
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }

    async fn view(&self, job: JobId) -> Result<BulkView> {
        let filter = BulkFilter { job: Some(job), ..BulkFilter::default() };
        let found = self.show.channels.store().bulks(&filter).await?;
        found.into_iter().next().with_context(|| format!("bulk job {job} no longer exists"))
    }

    /// Returns the name of the worker that runs the job.
    async fn runner(&self, job: JobId) -> Result<String> {
        let store = self.show.channels.store();
        let worker = store.job(job).await?.and_then(|job| job.row.worker);
        let queue = queue(self.show.scope);
        let mut workers = store.workers().await?.into_iter().filter(|its| its.queues.contains(&queue));
        let name = workers.find(|its| Some(its.id) == worker).map(|its| its.name);
        name.context("no worker runs the bulk job")
    }

    fn other(&self, job: JobId) -> JobId {
        if self.jobs[0] == job { self.jobs[1] } else { self.jobs[0] }
    }
}

fn reached(view: &BulkView, share: f64) -> bool {
    view.state == JobState::Running && view.share().is_some_and(|its| its >= share)
}
