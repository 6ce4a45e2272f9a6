//! A run: processes, load, disturbance, and the verdict.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::api::Api;
use crate::args::Arguments;
use crate::generator::Load;
use crate::handler::Handler;
use crate::hints::Hints;
use crate::phases::Phases;
use crate::place::Place;
use crate::process::{Process, program_beside};
use crate::read_back::ReadBack;
use crate::recovery::{Kill, Recovery};
use crate::report::Report;
use crate::scenario::{DELAY, KILL_EVERY, Scenario};
use crate::timeline::Timeline;
use crate::verdict::{Check, decide};

/// The number of workers.
const WORKERS: usize = 2;
/// How long workers may take to register.
const START_MAX: Duration = Duration::from_secs(60);

/// The workers that run, and those that were killed.
struct Workers {
    /// The names of the workers, and their processes.
    running: Vec<(String, Process)>,
    started: usize,
    kills: Vec<Kill>,
}

/// Runs a scenario.
///
/// # Errors
/// When a process cannot be started or ends unexpectedly, or the store cannot be read back.
pub async fn run(arguments: &Arguments) -> Result<Report> {
    let Arguments { scenario, store, .. } = *arguments;
    if let Some(refusal) = scenario.refusal(store) {
        bail!("{refusal}");
    }
    let program = match &arguments.program {
        Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?,
        None => program_beside(&std::env::current_exe()?)?,
    };
    let handler = Handler::start().await?;
    let place = Place::create(scenario, store, program, handler.address).await?;
    let (mut server, address) = place.program.serve().await?;
    let api = Api::new(address);
    let mut workers = Workers::start(&place, &api).await?;
    let phases = Phases { length: Duration::from_secs(arguments.seconds) };
    let (began, began_at) = (Instant::now(), Timestamp::now());
    let hints = place.redis.as_ref().map(|redis| Hints::start(redis.url()));
    let load = Load { scenario, phases, rate: arguments.rate, began, api: api.clone(), hints };
    let generating = tokio::spawn(load.generate());
    disturb(scenario, phases, began, &place, &mut workers).await?;
    let evidence = generating.await??;
    let read = ReadBack::read(&api, &evidence).await?;
    server.check_running()?;
    workers.check_running()?;
    let checks: Vec<Check> = decide(scenario, &evidence, &read, &handler.calls());
    let recovery = Recovery::of(&read, &api.workers().await?, &workers.kills);
    let timeline = Timeline::of(phases, began_at, &evidence, &read.jobs);
    let jobs = read.jobs.len();
    let kills = workers.kills.iter().map(|kill| kill.at.duration_since(began_at).as_secs_f64()).collect();
    Ok(Report { arguments: arguments.clone(), began_at, phases, jobs, checks, recovery, timeline, kills })
}

/// Disturbs the run in its second phase. Returns at the end of that.
async fn disturb(
    scenario: Scenario,
    phases: Phases,
    began: Instant,
    place: &Place,
    workers: &mut Workers,
) -> Result<()> {
    let end = began + phases.end();
    tokio::time::sleep_until(began + phases.begin()).await;
    match scenario {
        Scenario::SameKey | Scenario::Mixed => {}
        Scenario::WorkerKilled => {
            while Instant::now() < end {
                workers.kill_one(place).await?;
                tokio::time::sleep_until(end.min(Instant::now() + KILL_EVERY)).await;
            }
        }
        Scenario::RedisDown => {
            if let Some(redis) = &place.redis {
                redis.kill().await;
                tokio::time::sleep_until(end).await;
                redis.start().await;
            }
        }
        Scenario::SlowDatabase => {
            if let Some(proxy) = &place.proxy {
                proxy.delay_replies(DELAY);
                tokio::time::sleep_until(end).await;
                proxy.delay_replies(Duration::ZERO);
            }
        }
    }
    tokio::time::sleep_until(end).await;
    Ok(())
}

impl Workers {
    /// Starts the workers, and waits until the store knows all of them.
    async fn start(place: &Place, api: &Api) -> Result<Self> {
        let mut workers = Self { running: Vec::new(), started: 0, kills: Vec::new() };
        for _ in 0..WORKERS {
            workers.start_one(place)?;
        }
        let began = Instant::now();
        loop {
            let registered = api.workers().await?;
            let is_registered = |name: &String| registered.iter().any(|worker| worker.name == *name);
            if workers.running.iter().all(|(name, _)| is_registered(name)) {
                return Ok(workers);
            }
            workers.check_running()?;
            ensure!(began.elapsed() < START_MAX, "the workers do not register");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn start_one(&mut self, place: &Place) -> Result<()> {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let process = place.program.work(&name)?;
        self.running.push((name, process));
        Ok(())
    }

    /// Kills the worker that has run longest, and starts another one.
    async fn kill_one(&mut self, place: &Place) -> Result<()> {
        let (worker, mut process) = self.running.remove(0);
        process.kill().await?;
        self.kills.push(Kill { worker, at: Timestamp::now() });
        self.start_one(place)
    }

    fn check_running(&mut self) -> Result<()> {
        self.running.iter_mut().try_for_each(|(_, process)| process.check_running())
    }
}
