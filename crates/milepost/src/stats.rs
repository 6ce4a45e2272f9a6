//! What a worker has done so far, counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, DistributionView, Durations, JOBS};

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counters of one worker, over all its incarnations.
        #[derive(Debug)]
        pub(crate) struct Stats {
            $(pub(crate) $name: Counter,)+
            /// Jobs of a claim that brought some.
            pub(crate) claim_jobs: Distribution,
            /// Ends that were told at once.
            pub(crate) end_jobs: Distribution,
            /// How long jobs could have been claimed before they were, by queue and kind.
            pub(crate) waits: Durations<(String, String)>,
            /// How long handlers took, by kind.
            pub(crate) runs: Durations<String>,
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
            pub(crate) fn view(&self) -> StatsView {
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
    pub(crate) fn spread(&self) -> SpreadView {
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
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
