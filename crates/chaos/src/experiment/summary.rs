//! The result of an experiment.

use std::fmt;
use std::time::Duration;

use super::StoreKind;
use super::fault::Fault;
use super::faults::Faults;
use crate::checker::{Verdict, lost_calls};
use crate::record::{Outcome, Record};
use crate::replay::{Replay, replay_jobs};

/// The promise that cannot be checked if jobs are deleted: the one about deletions is.
const DURABLE: u8 = 1;
/// The promise that is only shown by moves.
const MOVE: u8 = 12;
/// The promise that cannot be checked if the times of the store are wrong.
const LIMITS: u8 = 7;

/// What happened, and the verdicts.
#[derive(Debug)]
pub struct Summary {
    seed: u64,
    store: StoreKind,
    faults: Vec<(Fault, u32)>,
    /// Calls that were acknowledged, refused, and without an answer.
    calls: [usize; 3],
    jobs: usize,
    /// Ends that were refused because another run owned the job.
    fenced: usize,
    /// Runs that were taken away because their worker had lost its lease.
    rescued: usize,
    /// Acknowledged calls that a loss of commits explains.
    lost: usize,
    /// How long it took until everything had ended; none if it did not.
    settled: Option<Duration>,
    /// What `milepost doctor` found, and processes that failed.
    failed: Vec<String>,
    verdicts: Vec<Verdict>,
    replay: Replay,
}

impl Summary {
    pub(super) fn new(
        seed: u64,
        store: StoreKind,
        faults: Faults,
        settled: Option<Duration>,
        failed: Vec<String>,
        record: &Record,
        verdicts: Vec<Verdict>,
    ) -> Self {
        let count = |outcome| record.operations.iter().filter(|call| call.outcome == outcome).count();
        Self {
            seed,
            store,
            faults: faults.count(),
            calls: [Outcome::Ok, Outcome::Failed, Outcome::Unknown].map(count),
            jobs: record.jobs().count(),
            fenced: record.fenced(),
            rescued: record.rescued(),
            lost: lost_calls(record),
            settled,
            failed,
            verdicts,
            replay: replay_jobs(record),
        }
    }

    /// Returns why the experiment has failed: a promise was broken, the doctor found something, or it proves nothing because a fault never
    /// happened, no run was ever taken away, or a promise was not checked.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let never = self.faults.iter().filter(|(_, count)| *count == 0);
        let mut failures: Vec<String> = never.map(|(fault, _)| format!("no {}", fault.as_str())).collect();
        let takes_runs_away =
            |(fault, _): &(Fault, u32)| matches!(fault, Fault::KillWorker | Fault::StopWorker);
        if self.rescued == 0 && self.faults.iter().any(takes_runs_away) {
            failures.push("no run was taken away".to_owned());
        }
        let is_gentle = self.faults.iter().all(|(fault, _)| fault.is_gentle());
        if is_gentle && self.rescued > 0 {
            failures.push(format!("{} runs were taken away by faults that take none", self.rescued));
        }
        if self.lost == 0 && self.can_lose() {
            failures.push("no acknowledged call was lost".to_owned());
        }
        if self.settled.is_none() {
            failures.push("not everything has ended".to_owned());
        }
        failures.extend(self.replay.refused.iter().take(1).map(|refused| format!("model: {refused}")));
        failures.extend(self.failed.iter().cloned());
        let broken = self.verdicts.iter().filter(|verdict| verdict.violated > 0);
        let has_times = !self.faults.iter().any(|(fault, _)| fault.sets_clock_of(self.store));
        let is_shown = |number: u8| match number {
            DURABLE => !self.has(Fault::Prune),
            MOVE => self.has(Fault::Move),
            LIMITS => has_times,
            _ => true,
        };
        let unseen = self.verdicts.iter().filter(|verdict| verdict.checked == 0 && is_shown(verdict.number));
        failures.extend(unseen.map(|verdict| format!("promise {} was not checked", verdict.number)));
        failures.extend(broken.map(|verdict| format!("promise {} is broken", verdict.number)));
        failures
    }

    fn has(&self, kind: Fault) -> bool {
        self.faults.iter().any(|(fault, _)| *fault == kind)
    }

    /// Returns whether a fault can lose acknowledged calls.
    fn can_lose(&self) -> bool {
        self.faults.iter().any(|(fault, _)| fault.loses_commits())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [acknowledged, refused, unknown] = self.calls;
        writeln!(f, "store {:?}, seed {}", self.store, self.seed)?;
        for (fault, count) in &self.faults {
            writeln!(f, "{count:>6}  {}", fault.as_str())?;
        }
        writeln!(f, "{:>6}  jobs", self.jobs)?;
        writeln!(f, "{acknowledged:>6}  calls acknowledged, {refused} refused, {unknown} without an answer")?;
        if self.can_lose() {
            writeln!(f, "{:>6}  of them lost with the last commits of a server, as they can be", self.lost)?;
        }
        writeln!(f, "{:>6}  runs taken away, {} ends fenced", self.rescued, self.fenced)?;
        if let Some(settled) = self.settled {
            writeln!(f, "{:>6.1} s until everything had ended", settled.as_secs_f64())?;
        }
        for verdict in &self.verdicts {
            writeln!(f, "{verdict}")?;
        }
        writeln!(f, "{}", self.replay)?;
        for failure in self.failures() {
            writeln!(f, "FAILED: {failure}")?;
        }
        Ok(())
    }
}
