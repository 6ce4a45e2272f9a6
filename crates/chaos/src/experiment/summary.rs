//! The result of an experiment.

use std::fmt;
use std::time::Duration;

use super::StoreKind;
use super::faults::{Fault, Faults};
use crate::checker::Verdict;
use crate::record::{EndAnswer, Outcome, Record, What};

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
    /// How long it took until everything had ended; none if it did not.
    settled: Option<Duration>,
    /// What `milepost doctor` found.
    findings: Vec<String>,
    verdicts: Vec<Verdict>,
}

impl Summary {
    pub(super) fn new(
        seed: u64,
        store: StoreKind,
        faults: Faults,
        settled: Option<Duration>,
        findings: Vec<String>,
        record: &Record,
        verdicts: Vec<Verdict>,
    ) -> Self {
        let count = |outcome| record.operations.iter().filter(|call| call.outcome == outcome).count();
        let is_fenced = |what: &What| matches!(what, What::End { answer: Some(EndAnswer::Fenced), .. });
        Self {
            seed,
            store,
            faults: faults.count(store == StoreKind::Postgres),
            calls: [Outcome::Ok, Outcome::Failed, Outcome::Unknown].map(count),
            jobs: record.jobs().count(),
            fenced: record.operations.iter().filter(|call| is_fenced(&call.what)).count(),
            rescued: record
                .changes()
                .filter(|change| change.error_code.as_deref() == Some("lease_lost"))
                .count(),
            settled,
            findings,
            verdicts,
        }
    }

    /// Returns why the experiment has failed: a promise was broken, the doctor found something, or it proves nothing because a fault never
    /// happened or no run was ever taken away.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let never = self.faults.iter().filter(|(_, count)| *count == 0);
        let mut faults: Vec<String> = never.map(|(fault, _)| format!("no {}", fault.as_str())).collect();
        if self.rescued == 0 {
            faults.push("no run was taken away".to_owned());
        }
        if self.settled.is_none() {
            faults.push("not everything has ended".to_owned());
        }
        faults.extend(self.findings.iter().map(|finding| format!("doctor: {finding}")));
        let broken = self.verdicts.iter().filter(|verdict| verdict.violated > 0);
        faults.extend(broken.map(|verdict| format!("promise {} is broken", verdict.number)));
        faults
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
        writeln!(f, "{:>6}  runs taken away, {} ends fenced", self.rescued, self.fenced)?;
        if let Some(settled) = self.settled {
            writeln!(f, "{:>6.1} s until everything had ended", settled.as_secs_f64())?;
        }
        for verdict in &self.verdicts {
            writeln!(f, "{verdict}")?;
        }
        for fault in self.faults() {
            writeln!(f, "FAILED: {fault}")?;
        }
        Ok(())
    }
}
