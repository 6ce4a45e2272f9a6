//! Counters of workers' activity, kept in the worker's process or in the server that the worker calls.

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
            /// Numbers of jobs per non-empty claim.
            pub claim_jobs: Distribution,
            /// Numbers of ends reported together.
            pub end_jobs: Distribution,
            /// How long jobs were claimable before they were claimed, by queue and kind.
            pub waits: Durations<(String, String)>,
            /// How long handlers ran, by kind.
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
            /// Whether the helper beside the store responds; `None` without a helper.
            pub coordination_up: Option<bool>,
            /// Calls of that helper that failed or timed out.
            pub coordination_failures: u64,
        }

        impl Stats {
            /// Returns the current values.
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
    /// Runs whose handler failed, with attempts left.
    retried,
    /// Runs that failed permanently.
    failed,
    /// Runs released without using up the attempt.
    yielded,
    /// Runs that stopped on request.
    stopped,
    /// Handlers that panicked.
    panicked,
    /// Ends that were rejected because the run token was outdated.
    fenced,
    /// Ends that were already stored: an answer was lost.
    repeated,
    /// Ends acknowledged by the store.
    acknowledged,
    /// Jobs that this worker holds according to the store, although the answer to their claim was lost.
    adopted,
    /// Jobs rescued from dead workers.
    rescued,
    /// Jobs created by ticks of schedules in this worker.
    ticked,
    /// Jobs deleted after their retention period, including dead letters.
    pruned,
    /// Dead letters deleted after their retention period.
    dead_letters_pruned,
    /// Dead letters of inboxes deleted after their retention period.
    inbox_dead_pruned,
    /// How often the lease was lost and the worker registered again.
    leases_lost,
}

/// Histograms of one worker, over all its incarnations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpreadView {
    /// Numbers of jobs per non-empty claim.
    pub claim_jobs: DistributionView,
    /// Numbers of ends reported together.
    pub end_jobs: DistributionView,
    /// How long jobs were claimable before they were claimed, in seconds, by queue and kind.
    pub wait_s: BTreeMap<(String, String), DistributionView>,
    /// How long handlers ran, in seconds, by kind.
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

    /// Counts an end that the store has accepted.
    pub fn count_end(&self, end: &End) {
        match end {
            End::Succeed { .. } => self.succeeded.add(1),
            End::Retry { .. } => self.retried.add(1),
            End::Fail { .. } => self.failed.add(1),
            End::Yield { .. } => self.yielded.add(1),
            End::Cancel | End::Abort => self.stopped.add(1),
        }
    }

    /// Returns the current histograms.
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

/// A counter that only increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds a number.
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
