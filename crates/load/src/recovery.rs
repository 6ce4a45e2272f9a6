//! How long it took until the jobs of a killed worker ran again.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::WorkerRow;
use crate::read_back::ReadBack;

/// A worker that was killed.
#[derive(Clone, Debug)]
pub struct Kill {
    /// The name of the worker.
    pub worker: String,
    /// When it was killed.
    pub at: Timestamp,
}

/// The times from kills until the next attempts of the lost jobs.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// The times, in seconds, in ascending order.
    pub seconds: Vec<f64>,
}

impl Recovery {
    /// Computes the times. Attempts that were lost without a kill are omitted.
    #[must_use]
    pub fn of(store: &ReadBack, workers: &[WorkerRow], kills: &[Kill]) -> Self {
        let mut seconds: Vec<f64> = store
            .attempts
            .values()
            .flat_map(|attempts| attempts.iter().zip(attempts.iter().skip(1)))
            .filter(|(attempt, _)| attempt.is_lost())
            .filter_map(|(attempt, next)| {
                let worker = workers.iter().find(|worker| Some(worker.id) == attempt.worker)?;
                let kill = kills.iter().find(|kill| kill.worker == worker.name)?;
                Some(next.started_at.duration_since(kill.at).as_secs_f64())
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        Self { seconds }
    }

    /// Returns the time in seconds by which a lease, which began at the kill at the latest, was exceeded, for a share of the jobs.
    #[must_use]
    pub fn beyond_lease(&self, share: f64, lease: Duration) -> Option<f64> {
        let last = self.seconds.len().checked_sub(1)?;
        let index = (last as f64 * share).ceil() as usize;
        self.seconds.get(index).map(|seconds| seconds - lease.as_secs_f64())
    }
}
