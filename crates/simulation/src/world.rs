//! One run: processes, faults, and a verdict.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use milepost_chaos::checker::check;
use milepost_chaos::export::export;
use milepost_chaos::load::setup::prepare;
use milepost_chaos::load::worker::{self, Services};
use milepost_chaos::load::{Pace, client, reader};
use milepost_chaos::record::{Record, Row};
use milepost_chaos::replay::replay_jobs;
use milepost_chaos::settle::{examined, settle};
use milepost_chaos::witness::{Notes, Witness};
use milepost_sqlite::{SqliteOptions, Threads};
use milepost_testkit::home::{Home, SqliteHome};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::consumer::Consumer;
use crate::machine;
use crate::node::Node;
use crate::plan::{Fault, PROCESSES, Plan, Role};
use crate::trace::Trace;

/// The pace of a simulated hour.
const PACE: Pace = Pace {
    lease: Duration::from_secs(30),
    poll_interval: Duration::from_secs(5),
    call_pause_ms_max: 40_000,
    handler_ms_max: 20_000,
    repeated_ms_max: 60_000,
    attempt_max: Duration::from_secs(120),
    chunk_pause: Duration::from_secs(1),
    tick_every: Duration::from_secs(60),
    stream_pause: Duration::from_secs(5),
};
/// How long nothing may end after the faults have stopped, while something is open, in virtual time.
const SETTLE_MAX: Duration = Duration::from_secs(1_800);
/// How long a process may take to end after it was asked to.
const FINISH_MAX: Duration = Duration::from_secs(600);
/// The promise that no simulation shows: no store is moved.
const MOVE: u8 = 12;

/// What happened in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The hash of its [trace](crate::trace).
    pub trace: String,
    /// The number of calls of the store.
    pub calls: u64,
    /// The number of jobs.
    pub jobs: usize,
    /// The number of runs that were taken away from a worker.
    pub rescued: usize,
    /// The number of ends that were refused because another run owned the job.
    pub fenced: usize,
    /// How often each of [`Fault::KINDS`] happened.
    pub faults: Vec<u32>,
    /// The number of calls with a fault.
    pub calls_with_fault: u32,
    /// How often a fault that was aimed at a call happened, by the call.
    pub aimed: BTreeMap<String, u32>,
    /// How many facts were checked, for each promise.
    pub checked: Vec<u64>,
    /// Why it failed.
    pub failures: Vec<String>,
}

/// Runs a plan on a copy of an empty, migrated file, and writes the record of it to a file. The thread must not have been simulated before.
///
/// # Errors
/// When the file cannot be copied, or the store refuses the definitions of the load.
pub fn simulate(plan: &Plan, template: &Path, kept: Option<&Path>) -> Result<Outcome> {
    machine::seed(plan.seed);
    let folder = tempfile::tempdir_in(in_memory())?;
    let path = folder.path().join("jobs.db");
    std::fs::copy(template, &path).with_context(|| format!("cannot copy {}", template.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let panics = record_panics();
    let outcome = runtime.block_on(async {
        machine::begin();
        let options = SqliteOptions { threads: Threads::OfCallers, ..SqliteOptions::default() };
        World::new(SqliteHome::open(path, options), plan.seed).run(plan, kept).await
    });
    let mut outcome = outcome?;
    outcome.failures.extend(panics.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
    Ok(outcome)
}

/// Creates an empty, migrated file, which [`simulate`] copies.
///
/// # Errors
/// When it cannot be created.
pub fn create_template(path: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let folder = path.parent().context("a path without a folder")?;
        let home = SqliteHome::create(folder, SqliteOptions::default()).await;
        home.tamper(&format!("VACUUM INTO '{}'", path.display())).await;
        Ok(())
    })
}

/// Returns a folder in memory, if there is one.
#[must_use]
pub fn in_memory() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Records panics of all tasks instead of printing them.
fn record_panics() -> Arc<Mutex<Vec<String>>> {
    let panics = Arc::new(Mutex::new(Vec::new()));
    let record = panics.clone();
    std::panic::set_hook(Box::new(move |panic| {
        record.lock().unwrap_or_else(PoisonError::into_inner).push(format!("panic: {panic}"));
    }));
    panics
}

/// A process that runs.
struct Process {
    node: Arc<Node>,
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

/// Something that follows a fault.
enum After {
    Start(usize),
    Thaw(Arc<Node>),
}

struct World {
    home: Arc<SqliteHome>,
    seed: u64,
    notes: Notes,
    trace: Trace,
    started: u64,
    processes: Vec<Option<Process>>,
    /// What follows, with its time.
    later: Vec<(Instant, After)>,
    crashed: mpsc::UnboundedReceiver<(usize, u64)>,
    crashes: mpsc::UnboundedSender<(usize, u64)>,
    /// For each time the clock was set, the last position of the history, and by how much the clock was ahead until then.
    clock_set: Vec<(i64, i64)>,
    faults: Vec<u32>,
    calls_with_fault: u32,
    aimed: BTreeMap<String, u32>,
}

impl World {
    fn new(home: SqliteHome, seed: u64) -> Self {
        let (crashes, crashed) = mpsc::unbounded_channel();
        Self {
            home: Arc::new(home),
            seed,
            notes: Notes::new(machine::true_time),
            clock_set: Vec::new(),
            trace: Trace::default(),
            started: 0,
            processes: PROCESSES.iter().map(|_| None).collect(),
            later: Vec::new(),
            crashed,
            crashes,
            faults: vec![0; Fault::KINDS.len()],
            calls_with_fault: 0,
            aimed: BTreeMap::new(),
        }
    }

    async fn run(mut self, plan: &Plan, kept: Option<&Path>) -> Result<Outcome> {
        let began = Instant::now();
        let witness = Arc::new(Witness::in_memory(&self.notes, "simulation"));
        prepare(self.home.as_ref(), witness.clone(), PACE).await?;
        (0..PROCESSES.len()).for_each(|index| self.start(index));
        for planned in &plan.faults {
            self.pass_until(began + Duration::from_millis(planned.at_ms)).await;
            self.inject(&planned.fault).await;
        }
        self.pass_until(began + Duration::from_millis(plan.length_ms)).await;
        self.heal();
        let mut failures = self.finish(Role::Client).await;
        if settle(self.home.store().as_ref(), &witness, SETTLE_MAX).await.is_none() {
            failures.push("not everything has ended".to_owned());
        }
        failures.extend(self.finish(Role::Worker).await);
        failures.extend(self.finish(Role::Reader).await);
        self.outcome(failures, kept).await
    }

    /// Starts a process, with a new name.
    fn start(&mut self, index: usize) {
        let (name, role) = PROCESSES[index];
        self.started += 1;
        let witness = Arc::new(Witness::in_memory(&self.notes, &format!("{name} {}", self.started)));
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(self.started);
        let node = Node::new(index, witness.clone(), seed, self.trace.clone(), self.crashes.clone());
        let home = Arc::new(self.home.intercepted(node.clone()));
        let stop = CancellationToken::new();
        let asked = stop.clone();
        let task = tokio::spawn(async move {
            match role {
                Role::Worker => worker::serve(home, witness, PACE, &Services::default(), asked).await,
                Role::Client => {
                    client::call(home.store(), witness, seed, PACE, asked).await;
                    Ok(())
                }
                Role::Reader => {
                    let (store, consumer) = (home.store(), Arc::new(Consumer(home)));
                    reader::read(store, &witness, consumer, PACE, asked).await
                }
            }
        });
        self.processes[index] = Some(Process { node, stop, task });
    }

    /// Lets time pass. Processes that are down start again.
    async fn pass_until(&mut self, end: Instant) {
        loop {
            let next = self.later.iter().map(|(at, _)| *at).min().unwrap_or(end).min(end);
            tokio::select! {
                biased;
                Some((index, for_ms)) = self.crashed.recv() => {
                    self.crash(index, for_ms);
                }
                () = sleep_until(next) => {
                    if next == end && self.later.iter().all(|(at, _)| *at > end) {
                        return;
                    }
                    self.follow(next);
                }
            }
        }
    }

    /// Does what is due.
    fn follow(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, After)> = due;
        for (_, after) in due {
            match after {
                After::Start(index) => self.start(index),
                After::Thaw(node) => node.thaw(),
            }
        }
    }

    async fn inject(&mut self, fault: &Fault) {
        let at = |for_ms: u64| Instant::now() + Duration::from_millis(for_ms);
        match *fault {
            Fault::Crash { process, for_ms } => {
                if !self.crash(process, for_ms) {
                    return;
                }
            }
            Fault::Freeze { process: index, for_ms } => {
                let Some(process) = &self.processes[index] else { return };
                process.node.freeze();
                let after = After::Thaw(process.node.clone());
                self.later.push((at(for_ms), after));
            }
            Fault::SetClock { by_ms } => {
                let last = self.home.count("SELECT coalesce(max(pos), 0) FROM milepost_history").await;
                self.clock_set.push((last, machine::ahead_ms()));
                machine::set_clock(by_ms);
            }
            // Counted when it meets a call.
            Fault::CrashAt { process, .. }
            | Fault::LoseAnswer { process, .. }
            | Fault::FailHeartbeats { process, .. } => {
                let process = self.processes[process].as_ref();
                return process.map_or((), |process| process.node.suffer(fault));
            }
            Fault::LoseAnswers { process, .. }
            | Fault::FailCalls { process, .. }
            | Fault::SlowCalls { process, .. } => {
                let Some(process) = &self.processes[process] else { return };
                process.node.suffer(fault);
            }
        }
        self.faults[fault.kind()] += 1;
    }

    /// Ends a process as if it had been killed. It starts again later. Returns false if it does not run.
    fn crash(&mut self, index: usize, for_ms: u64) -> bool {
        let Some(process) = self.processes[index].take() else { return false };
        process.node.die();
        process.task.abort();
        self.count(&process.node);
        self.later.push((Instant::now() + Duration::from_millis(for_ms), After::Start(index)));
        true
    }

    /// Adds the faults that met calls of a process.
    fn count(&mut self, node: &Node) {
        self.calls_with_fault += node.calls_with_fault();
        for ((call, fault), count) in node.aimed() {
            self.faults[fault] += count;
            *self.aimed.entry(call).or_default() += count;
        }
    }

    /// Ends all faults.
    fn heal(&mut self) {
        while let Ok((index, for_ms)) = self.crashed.try_recv() {
            self.crash(index, for_ms);
        }
        if let Some(last) = self.later.iter().map(|(at, _)| *at).max() {
            self.follow(last);
        }
        for process in self.processes.iter().flatten() {
            process.node.heal();
        }
    }

    /// Asks the processes with this role to end. Returns how they failed.
    async fn finish(&mut self, role: Role) -> Vec<String> {
        let mut failures = Vec::new();
        for (index, (name, _)) in PROCESSES.iter().enumerate().filter(|(_, (_, its))| *its == role) {
            let Some(process) = self.processes[index].take() else { continue };
            self.count(&process.node);
            process.stop.cancel();
            match timeout(FINISH_MAX, process.task).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => failures.push(format!("{name} failed: {error:#}")),
                Ok(Err(error)) => failures.push(format!("{name} failed: {error}")),
                Err(_) => failures.push(format!("{name} does not end")),
            }
        }
        failures
    }

    async fn outcome(self, mut failures: Vec<String>, kept: Option<&Path>) -> Result<Outcome> {
        let mut record = self.notes.record();
        export(self.home.as_ref(), &mut record).await?;
        if !self.clock_set.is_empty() {
            by_true_time(&mut record, &self.clock_set);
        }
        if let Some(path) = kept {
            record.write(BufWriter::new(File::create(path)?))?;
        }
        failures.extend(
            examined(&self.home.store()).await.into_iter().map(|finding| format!("doctor: {finding}")),
        );
        failures.extend(replay_jobs(&record).refused.into_iter().map(|refused| format!("model: {refused}")));
        let verdicts = check(&record);
        for verdict in verdicts.iter().filter(|verdict| verdict.violated > 0) {
            failures.push(format!("promise {}: {}", verdict.number, verdict.violations.join("; ")));
        }
        Ok(Outcome {
            trace: self.trace.hash(&record),
            calls: self.trace.calls(),
            jobs: record.jobs().count(),
            rescued: record.rescued(),
            fenced: record.fenced(),
            faults: self.faults,
            calls_with_fault: self.calls_with_fault,
            aimed: self.aimed,
            checked: verdicts
                .iter()
                .filter(|verdict| verdict.number != MOVE)
                .map(|its| its.checked)
                .collect(),
            failures,
        })
    }
}

/// Makes the times of the history those of a clock that was never set, as the witness has them. What the clock itself decides is not checked in
/// these runs: the begin of retries, and rates. `clock_set`: positions of the history, and by how much the clock was ahead until there.
fn by_true_time(record: &mut Record, clock_set: &[(i64, i64)]) {
    for row in &mut record.rows {
        if let Row::Change(change) = row {
            let until = clock_set.iter().find(|(last, _)| change.pos <= *last);
            change.at_ms -= until.map_or_else(machine::ahead_ms, |(_, ahead_ms)| *ahead_ms);
            change.ready_at_ms = None;
        }
    }
    record.rows.retain(|row| !matches!(row, Row::Rate { .. }));
}
