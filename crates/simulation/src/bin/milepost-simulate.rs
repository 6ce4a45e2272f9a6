//! `milepost-simulate`: many simulated runs, each in a process of its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use milepost_simulation::plan::{Fault, PROCESSES, Plan};
use milepost_simulation::shrink::shrink;
use milepost_simulation::world::{Outcome, create_template, in_memory, simulate};

/// Runs Milepost in virtual time, with faults that a seed determines, and decides whether its promises hold
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run many seeds, and shrink the plans of those that fail
    Run {
        /// The number of seeds
        #[arg(long, default_value_t = 200)]
        seeds: u64,
        /// The first seed
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// The length of each run, in minutes of virtual time
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// The folder for the plans of failed runs
        #[arg(long, default_value = "target/simulation")]
        failed: PathBuf,
        /// Do not look for the faults that a failure needs
        #[arg(long)]
        no_shrink: bool,
    },
    /// Run a plan, and print what happened as JSON
    Replay {
        /// The plan
        plan: PathBuf,
        /// The file for the record, for `milepost-chaos check`
        #[arg(long)]
        record: Option<PathBuf>,
        /// An empty, migrated file
        #[arg(long, hide = true)]
        template: Option<PathBuf>,
    },
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Task::Run { seeds, first, minutes, failed, no_shrink } => {
            Runner::new(minutes, failed, !no_shrink)?.run(first, seeds)
        }
        Task::Replay { plan, record, template } => {
            let plan = serde_json::from_reader(BufReader::new(File::open(plan)?))?;
            let folder = tempfile::tempdir_in(in_memory())?;
            let template = match template {
                Some(template) => template,
                None => {
                    let template = folder.path().join("template.db");
                    create_template(&template)?;
                    template
                }
            };
            let outcome = std::thread::spawn(move || simulate(&plan, &template, record.as_deref())).join();
            let outcome = outcome.map_err(|_| anyhow::anyhow!("the simulation panicked"))??;
            println!("{}", serde_json::to_string(&outcome)?);
            Ok(ExitCode::from(u8::from(!outcome.failures.is_empty())))
        }
    }
}

/// Runs plans in processes.
struct Runner {
    minutes: u64,
    /// The folder of plans of failed runs.
    failed: PathBuf,
    shrinks: bool,
    /// The folder of the template and of the plans that run.
    folder: tempfile::TempDir,
    plans: AtomicU64,
}

/// The sum of all runs.
#[derive(Default)]
struct Total {
    runs: u64,
    sum: Outcome,
    failed: Vec<(Plan, Outcome)>,
}

impl Runner {
    fn new(minutes: u64, failed: PathBuf, shrinks: bool) -> Result<Self> {
        let folder = tempfile::tempdir_in(in_memory())?;
        create_template(&folder.path().join("template.db"))?;
        Ok(Self { minutes, failed, shrinks, folder, plans: AtomicU64::new(0) })
    }

    fn run(&self, first: u64, seeds: u64) -> Result<ExitCode> {
        let began = Instant::now();
        let next = AtomicU64::new(first);
        let total = Mutex::new(Total::default());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return Ok::<_, anyhow::Error>(());
                    }
                    let plan = Plan::generate(seed, self.minutes);
                    let outcome = self.replay(&plan)?;
                    total.lock().unwrap_or_else(PoisonError::into_inner).add(plan, outcome);
                }
            };
            let working: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            working.into_iter().try_for_each(|thread| thread.join().expect("a thread panicked"))
        })?;
        let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        let took = began.elapsed().as_secs_f64();
        println!("{} runs of {} minutes in {took:.0} s, seeds from {first}", total.runs, self.minutes);
        let mut problems = total.print();
        for (plan, outcome) in &total.failed {
            problems.push(self.explain(plan, outcome)?);
        }
        for problem in &problems {
            println!("FAILED: {problem}");
        }
        Ok(ExitCode::from(u8::from(!problems.is_empty())))
    }

    /// Runs a plan in a new process.
    fn replay(&self, plan: &Plan) -> Result<Outcome> {
        let number = self.plans.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("plan-{number}.json"));
        std::fs::write(&path, serde_json::to_vec(plan)?)?;
        let template = self.folder.path().join("template.db");
        let ran = Command::new(std::env::current_exe()?)
            .args([Path::new("replay"), &path, Path::new("--template"), &template])
            .output()?;
        std::fs::remove_file(&path)?;
        match serde_json::from_slice(&ran.stdout) {
            Ok(outcome) => Ok(outcome),
            Err(_) if ran.status.code().is_none() => {
                bail!("the run of seed {} was killed: {}", plan.seed, ran.status)
            }
            Err(_) => {
                let words = String::from_utf8_lossy(&ran.stderr);
                let failures = vec![format!("the run was not completed: {}", words.trim())];
                Ok(Outcome { failures, ..Outcome::default() })
            }
        }
    }

    /// Finds out which faults a failure needs, and prints them. Returns the failure in one line.
    fn explain(&self, plan: &Plan, outcome: &Outcome) -> Result<String> {
        let first = outcome.failures.first().map_or("", String::as_str);
        if !self.shrinks {
            return Ok(format!("seed {}: {}", plan.seed, outcome.failures.join("; ").replace('\n', " ")));
        }
        let kind = |outcome: &Outcome| {
            outcome.failures.first().map(|failure| failure.split(':').next().unwrap_or_default().to_owned())
        };
        let (small, runs) = shrink(plan, |plan| {
            self.replay(plan).is_ok_and(|outcome_of_it| kind(&outcome_of_it) == kind(outcome))
        });
        let again = self.replay(&small)?;
        std::fs::create_dir_all(&self.failed)?;
        let path = self.failed.join(format!("seed-{}.json", plan.seed));
        std::fs::write(&path, serde_json::to_vec_pretty(&small)?).context("the plan cannot be kept")?;
        println!(
            "\nseed {} fails; of {} faults, {} are needed ({runs} runs):",
            plan.seed,
            plan.faults.len(),
            small.faults.len()
        );
        print!("{small}");
        again.failures.iter().for_each(|failure| println!("    {failure}"));
        Ok(format!("seed {}: {first} (milepost-simulate replay {})", plan.seed, path.display()))
    }
}

impl Total {
    fn add(&mut self, plan: Plan, outcome: Outcome) {
        self.runs += 1;
        let sum = &mut self.sum;
        sum.calls += outcome.calls;
        sum.jobs += outcome.jobs;
        sum.rescued += outcome.rescued;
        sum.fenced += outcome.fenced;
        sum.calls_with_fault += outcome.calls_with_fault;
        for (call, count) in &outcome.aimed {
            *sum.aimed.entry(call.clone()).or_default() += count;
        }
        sum.faults.resize(sum.faults.len().max(outcome.faults.len()), 0);
        sum.faults.iter_mut().zip(&outcome.faults).for_each(|(sum, count)| *sum += count);
        sum.checked.resize(sum.checked.len().max(outcome.checked.len()), 0);
        sum.checked.iter_mut().zip(&outcome.checked).for_each(|(sum, count)| *sum += count);
        if !outcome.failures.is_empty() {
            self.failed.push((plan, outcome));
        }
    }

    /// Prints the sums. Returns what makes them prove nothing.
    fn print(&self) -> Vec<String> {
        let sum = &self.sum;
        println!("{:>10}  calls of the store, {} of them with a fault", sum.calls, sum.calls_with_fault);
        println!("{:>10}  jobs", sum.jobs);
        println!("{:>10}  runs taken away, {} ends fenced", sum.rescued, sum.fenced);
        let mut problems = Vec::new();
        for (kind, count) in Fault::KINDS.iter().zip(&sum.faults) {
            println!("{count:>10}  {kind}");
            if *count == 0 {
                problems.push(format!("no {kind} ever happened"));
            }
        }
        let calls: BTreeSet<&str> = PROCESSES.iter().flat_map(|(_, role)| role.calls()).copied().collect();
        for call in calls.into_iter().filter(|call| !sum.aimed.contains_key(*call)) {
            problems.push(format!("no fault that was aimed at {call} ever happened"));
        }
        if sum.rescued == 0 || sum.fenced == 0 {
            problems.push("no run was ever taken away, or no end was ever fenced".to_owned());
        }
        if sum.checked.contains(&0) {
            problems.push("a promise was never checked".to_owned());
        }
        println!("{:>10}  facts checked", sum.checked.iter().sum::<u64>());
        problems
    }
}
