//! Metrics of the workers that use the worker protocol, which export none themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use milepost_core::claim::ClaimedJob;
use milepost_core::finish::{Finish, Finished};
use milepost_core::ident::Run;
use milepost_core::stats::Stats;
use tokio::time::Instant;

use crate::metrics::{Counts, Sample, work};

/// Maximum number of runs whose start is remembered.
const BEGUN_MAX: usize = 100_000;
/// The age at which a run is dropped when the map is full: its end was reported to another server, or never.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The metrics of all these workers together.
#[derive(Default)]
pub(crate) struct Tally {
    stats: Stats,
    begun: Mutex<HashMap<Run, Begun>>,
}

/// A run that was claimed through this server.
struct Begun {
    kind: String,
    at: Instant,
}

impl Tally {
    /// Counts claimed jobs.
    pub(super) fn claimed(&self, jobs: &[ClaimedJob]) {
        self.stats.count_claimed(jobs);
        let at = Instant::now();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.len() + jobs.len() > BEGUN_MAX {
            begun.retain(|_, run| run.at.elapsed() < FORGOTTEN_AFTER);
        }
        let places = BEGUN_MAX.saturating_sub(begun.len());
        begun.extend(jobs.iter().take(places).map(|job| (job.run, Begun { kind: job.kind.clone(), at })));
    }

    /// Counts finished runs and the results of the store.
    pub(super) fn ended(&self, finishes: &[Finish], answers: &[Finished]) {
        let begun: Vec<Option<Begun>> = {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            let is_over = |answer: &Finished| *answer != Finished::Held;
            let told = finishes.iter().zip(answers);
            told.map(|(finish, answer)| is_over(answer).then(|| begun.remove(&finish.run)).flatten())
                .collect()
        };
        for ((finish, answer), begun) in finishes.iter().zip(answers).zip(begun) {
            match answer {
                Finished::Accepted => self.stats.count_end(&finish.end),
                Finished::Repeated => self.stats.repeated.add(1),
                Finished::Fenced => self.stats.fenced.add(1),
                Finished::Held => continue,
            }
            if let Some(Begun { kind, at }) = begun {
                self.stats.runs.add(kind.as_str(), at.elapsed());
            }
        }
        let over = answers.iter().filter(|answer| **answer != Finished::Held).count();
        if over > 0 {
            self.stats.acknowledged.add(over);
            self.stats.end_jobs.add(over as f64);
        }
    }

    /// Counts a worker that has lost its lease.
    pub(super) fn lease_lost(&self) {
        self.stats.leases_lost.add(1);
    }
}

impl Counts for Arc<Tally> {
    fn samples(&self) -> Vec<Sample> {
        work::samples(&self.stats.view(), &self.stats.spread())
    }
}
