//! What workers have done so far, counted where they are: in their own process, or in the server that they speak to.

mod distribution;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use self::distribution::JOBS;
pub use self::distribution::{Distribution, DistributionView, Durations};
use crate::claim::ClaimedJob;
use crate::finish::End;

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counters of one worker, over all its incarnations.
        #[derive(Debug)]
        pub struct Stats {
            $($(#[$meta])* pub $name: Counter,)+
            /// Jobs of a claim that brought some.
            pub claim_jobs: Distribution,
            /// Ends that were told at once.
            pub end_jobs: Distribution,
            /// How long jobs could have been claimed before they were, by queue and kind.
            pub waits: Durations<(String, String)>,
            /// How long handlers took, by kind.
            pub runs: Durations<String>,
        }

        impl Default for Stats {
            fn default() -> Self {
                Self {
                    $($name: Counter::default(),)+
                    claim_jobs: Distribution::new(JOBS),
                    end_jobs: Distribution::new(JOBS),
                    waits: Durations::default(),
                    runs: Durations::default(),
                }
            }
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct StatsView {
            $($(#[$meta])* pub $name: u64,)+
            /// Whether the helper beside the store answers; `None` when there is none.
            pub coordination_up: Option<bool>,
            /// Calls of that helper that failed or were not answered in time.
            pub coordination_failures: u64,
        }

        impl Stats {
            /// What they stand at.
            #[must_use]
            pub fn view(&self) -> StatsView {
                StatsView { $($name: self.$name.get(),)+ ..StatsView::default() }
            }
        }
    };
}

stats! {
    /// Jobs claimed.
    claimed,
    /// Runs whose handler returned success.
    succeeded,
    /// Runs whose handler failed, with another attempt to come.
    retried,
    /// Runs that failed for good.
    failed,
    /// Runs given back without spending the attempt.
    yielded,
    /// Runs that stopped because they were asked to.
    stopped,
    /// Handlers that panicked.
    panicked,
    /// Ends that came too late: the job had moved on.
    fenced,
    /// Ends that had been stored before: an answer was lost.
    repeated,
    /// Ends acknowledged by the store.
    acknowledged,
    /// Jobs that the store said we hold although their claim's answer never came.
    adopted,
    /// Jobs taken back from dead workers.
    rescued,
    /// Jobs that ticks of schedules made here.
    ticked,
    /// Jobs forgotten because their retention was over, dead letters among them.
    pruned,
    /// Dead letters forgotten because their retention was over.
    dead_letters_pruned,
    /// Dead letters of inboxes forgotten because their retention was over.
    inbox_dead_pruned,
    /// Times that the lease was lost and the worker registered anew.
    leases_lost,
}

/// How a worker's numbers are spread, over all its incarnations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpreadView {
    /// Jobs of a claim that brought some.
    pub claim_jobs: DistributionView,
    /// Ends that were told at once.
    pub end_jobs: DistributionView,
    /// For how many seconds jobs could have been claimed before they were, by queue and kind.
    pub wait_s: BTreeMap<(String, String), DistributionView>,
    /// How many seconds handlers took, by kind.
    pub run_s: BTreeMap<String, DistributionView>,
}

impl Stats {
    /// Counts a claim that the store has answered.
    pub fn count_claimed(&self, jobs: &[ClaimedJob]) {
        self.claimed.add(jobs.len());
        if !jobs.is_empty() {
            self.claim_jobs.add(jobs.len() as f64);
        }
        for job in jobs {
            if let Some(waited) = job.waited {
                self.waits.add(&(job.queue.clone(), job.kind.clone()), waited);
            }
        }
    }

    /// Counts an end that the store has taken.
    pub fn count_end(&self, end: &End) {
        match end {
            End::Succeed { .. } => self.succeeded.add(1),
            End::Retry { .. } => self.retried.add(1),
            End::Fail { .. } => self.failed.add(1),
            End::Yield { .. } => self.yielded.add(1),
            End::Cancel | End::Abort => self.stopped.add(1),
        }
    }

    /// How they are spread.
    #[must_use]
    pub fn spread(&self) -> SpreadView {
        SpreadView {
            claim_jobs: self.claim_jobs.view(),
            end_jobs: self.end_jobs.view(),
            wait_s: self.waits.view(),
            run_s: self.runs.view(),
        }
    }
}

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// So many more.
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// What it stands at.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
