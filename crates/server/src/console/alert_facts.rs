//! Data behind the alerts of the overview page.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::alert::AlertTarget;
use milepost_core::batch::listing::{BatchFilter, BatchView};
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::dag::state::BatchState;
use milepost_core::doctor::{Check, Finding, Look, PATIENCE_DEFAULT};
use milepost_core::error::StoreError;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::limit::LimitView;
use milepost_core::listing::{JobRow, LastFailure, QueueKinds};
use milepost_core::port::Store;
use milepost_core::schedule::ScheduleView;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::bulks;

/// Maximum number of failed jobs, of jobs that wait for a retry, and of aborted jobs, that are read.
pub(super) const JOBS_MAX: u32 = 200;
/// Maximum number of batches, and of bulk jobs, that are read for each state.
pub(super) const RUNS_MAX: u32 = 20;
/// Time limit of the query for promotions, which reads a few rows.
const PROMOTED_MAX: Duration = Duration::from_secs(5);

/// Data from the store. Counts that are not available yet are `None`.
pub(super) struct Facts {
    pub(super) queues: Option<Vec<QueueKinds>>,
    pub(super) subscriptions: Option<Vec<SubscriptionView>>,
    pub(super) consumers: Option<Vec<ConsumerView>>,
    pub(super) limits: Option<Vec<LimitView>>,
    pub(super) workers: Vec<WorkerView>,
    pub(super) schedules: Vec<ScheduleView>,
    /// Failed and aborted batches.
    pub(super) batches: Vec<BatchView>,
    pub(super) running_batches: Vec<BatchView>,
    /// Bulk jobs in progress, failed and aborted, with the reason of the failure or abort.
    pub(super) bulks: Vec<(BulkView, Option<String>)>,
    pub(super) failed: Vec<JobRow>,
    pub(super) retrying: Vec<JobRow>,
    /// The last failures of both.
    pub(super) failures: Vec<LastFailure>,
    pub(super) aborted: Vec<JobRow>,
    /// Who paused each paused queue, and why.
    pub(super) pauses: HashMap<String, String>,
    /// Promotions of the database server within the last days.
    pub(super) promoted: Option<Finding>,
    /// The targets of alerts.
    pub(super) alert_targets: Vec<AlertTarget>,
    /// Whether the store has any job, ended ones included.
    pub(super) has_jobs: bool,
}

impl Facts {
    /// Reads everything except counts. All queries are bounded.
    pub(super) async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let jobs = |state| JobFilter { state: Some(state), limit: JOBS_MAX, ..JobFilter::default() };
        let (failed, retrying, aborted) =
            (jobs(JobState::Failed), jobs(JobState::RetryWait), jobs(JobState::Aborted));
        let any = JobFilter { limit: 1, ..JobFilter::default() };
        let look = Look { now: Timestamp::now(), patience: PATIENCE_DEFAULT, time_limit: PROMOTED_MAX };
        let running =
            BatchFilter { state: Some(BatchState::Running), limit: RUNS_MAX, ..BatchFilter::default() };
        let (schedules, workers, batches, running_batches, bulks, failed, retrying, aborted, any, promoted) =
            tokio::try_join!(
                store.schedules_without_payloads(),
                store.workers(),
                batches(store),
                store.batches(&running),
                bulks(store),
                store.jobs(&failed),
                store.jobs(&retrying),
                store.jobs(&aborted),
                store.jobs(&any),
                store.examine(Check::Promoted, &look),
            )?;
        let ids: Vec<_> = failed.iter().chain(&retrying).map(|job| job.id).collect();
        let failures = store.last_failures(&ids).await?;
        // Not every account may read them.
        let alert_targets = store.alert_targets().await.unwrap_or_default();
        let (queues, subscriptions, consumers, limits) = (None, None, None, None);
        Ok(Self {
            queues,
            subscriptions,
            consumers,
            limits,
            workers,
            schedules,
            batches,
            running_batches,
            bulks,
            failed,
            retrying,
            failures,
            aborted,
            promoted,
            pauses: HashMap::new(),
            alert_targets,
            has_jobs: !any.is_empty(),
        })
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &WorkerView> {
        self.workers.iter().filter(|worker| worker.is_active())
    }

    /// Whether the store is known to be unused.
    pub(super) fn are_empty(&self) -> bool {
        fn none<T>(known: Option<&Vec<T>>) -> bool {
            known.is_some_and(Vec::is_empty)
        }
        !self.has_jobs
            && !self.workers.iter().any(WorkerView::runs_jobs)
            && self.schedules.is_empty()
            && none(self.subscriptions.as_ref())
            && none(self.consumers.as_ref())
    }

    /// Whether all counts are available.
    pub(super) const fn are_counted(&self) -> bool {
        self.queues.is_some()
            && self.subscriptions.is_some()
            && self.consumers.is_some()
            && self.limits.is_some()
    }
}

async fn batches(store: &dyn Store) -> Result<Vec<BatchView>, StoreError> {
    let of = |state| BatchFilter { state: Some(state), limit: RUNS_MAX, ..BatchFilter::default() };
    let mut batches = store.batches(&of(BatchState::Failed)).await?;
    batches.extend(store.batches(&of(BatchState::Aborted)).await?);
    Ok(batches)
}

async fn bulks(store: &dyn Store) -> Result<Vec<(BulkView, Option<String>)>, StoreError> {
    let of = |state| BulkFilter { state, limit: RUNS_MAX, ..BulkFilter::default() };
    // The list begins with runs in progress, which may fill it.
    let mut bulks = store.bulks(&of(None)).await?;
    bulks.retain(|bulk| !bulk.is_over());
    for state in [JobState::Failed, JobState::Aborted] {
        bulks.extend(store.bulks(&of(Some(state))).await?);
    }
    let why = bulks::why_stopped(&bulks, store).await?;
    let with_why = |bulk: BulkView| {
        let why = why.get(&bulk.id).cloned();
        (bulk, why)
    };
    Ok(bulks.into_iter().map(with_why).collect())
}
