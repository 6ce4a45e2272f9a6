//! Audited actions.

use std::sync::LazyLock;

use super::Subject;
use crate::alert::AlertKey;
use crate::batch::operation::{BatchOperation, BatchVerb};
use crate::doctor::Check;
use crate::event::relay_listing::{DeadVerb, ParkedVerb};
use crate::event::{Aggregate, NewEvent};
use crate::ident::{BatchId, EventId, JobId};
use crate::inbox::listing::LetterId;
use crate::job::NewJob;
use crate::limit::Target;
use crate::retention::Retained;
use crate::transition::Verb;

/// The action that creates jobs.
const CREATE_JOBS: &str = "job.create";

/// The action that shows hidden values of a job, and changes nothing.
const REVEAL: &str = "job.reveal";

/// The names of the actions on objects other than jobs.
const OTHERS: [&str; 46] = [
    "queue.pause",
    "queue.resume",
    "limit.put",
    "limit.remove",
    "retention.put",
    "retention.remove",
    "alert.silence",
    "alert.unsilence",
    "schedule.put",
    "schedule.remove",
    "schedule.pause",
    "schedule.resume",
    "schedule.run",
    "bulk.put",
    "bulk.remove",
    "bulk.start",
    "bulk.set",
    "bulk.retry_failures",
    "bulk.interrupt",
    "dag.define",
    "batch.start",
    "batch.abort",
    "batch.resume",
    "batch.cancel",
    "batch.mark",
    "batch.rerun",
    "batch.signal",
    "event.emit",
    "subscription.pause",
    "subscription.resume",
    "subscription.remove",
    "subscription.replay",
    "parked.retry",
    "parked.skip",
    "parked.edit",
    "dead_event.retry",
    "dead_event.drop",
    "log.reseed",
    "log.prune",
    "consumer.put",
    "inbox.expect",
    "inbox.retry",
    "inbox.drop",
    "doctor.repair",
    "token.create",
    "token.revoke",
];

/// The names of all actions that operators can perform on a store: the values of [`AuditedAction::what`].
pub static WHATS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let on_jobs = Verb::ALL.iter().filter_map(|verb| verb.audit_name());
    [CREATE_JOBS, REVEAL].into_iter().chain(on_jobs).chain(OTHERS).collect()
});

/// An action on a store. It writes one audit row, unless it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedAction {
    /// The name of the action: an object type and a verb, such as `job.cancel`.
    pub what: &'static str,
    /// The object of the action.
    pub subject: Subject,
}

/// A constructor for every verb of the ports that operators use.
impl AuditedAction {
    const fn of(what: &'static str, subject: Subject) -> Self {
        Self { what, subject }
    }

    /// Enqueues jobs.
    #[must_use]
    pub fn create_jobs(jobs: &[NewJob]) -> Self {
        let subject = match jobs {
            [job] => Subject::NewJob(job.id),
            _ => Subject::Store,
        };
        Self::of(CREATE_JOBS, subject)
    }

    /// Applies an operator's verb to a job.
    #[must_use]
    pub const fn operate(job: JobId, verb: Verb) -> Self {
        let what = match verb.audit_name() {
            Some(name) => name,
            // No store lets an operator use them.
            None => "job.change",
        };
        Self::of(what, Subject::Job(job))
    }

    /// Reveals the hidden values of a job to an operator.
    #[must_use]
    pub const fn reveal(job: JobId) -> Self {
        Self::of(REVEAL, Subject::Job(job))
    }

    /// Pauses or resumes a queue.
    #[must_use]
    pub fn pause_queue(queue: &str, paused: bool) -> Self {
        let what = if paused { "queue.pause" } else { "queue.resume" };
        Self::of(what, Subject::Queue(queue.to_owned()))
    }

    /// Creates or changes a limit.
    #[must_use]
    pub fn put_limit(target: &Target) -> Self {
        Self::of("limit.put", Subject::Limit(target.clone()))
    }

    /// Removes a limit.
    #[must_use]
    pub fn remove_limit(target: &Target) -> Self {
        Self::of("limit.remove", Subject::Limit(target.clone()))
    }

    /// Stores the retention period of this.
    #[must_use]
    pub const fn put_retention(of: Retained) -> Self {
        Self::of("retention.put", Subject::Retention(of))
    }

    /// Removes the stored retention period of this.
    #[must_use]
    pub const fn remove_retention(of: Retained) -> Self {
        Self::of("retention.remove", Subject::Retention(of))
    }

    /// Silences an alert.
    #[must_use]
    pub fn silence_alert(key: &AlertKey) -> Self {
        Self::of("alert.silence", Subject::Alert(key.clone()))
    }

    /// Ends the silence of an alert.
    #[must_use]
    pub fn unsilence_alert(key: &AlertKey) -> Self {
        Self::of("alert.unsilence", Subject::Alert(key.clone()))
    }

    /// Creates or changes a schedule.
    #[must_use]
    pub fn put_schedule(name: &str) -> Self {
        Self::of("schedule.put", Subject::Schedule(name.to_owned()))
    }

    /// Removes a schedule.
    #[must_use]
    pub fn remove_schedule(name: &str) -> Self {
        Self::of("schedule.remove", Subject::Schedule(name.to_owned()))
    }

    /// Pauses a schedule.
    #[must_use]
    pub fn pause_schedule(name: &str) -> Self {
        Self::of("schedule.pause", Subject::Schedule(name.to_owned()))
    }

    /// Resumes a paused schedule.
    #[must_use]
    pub fn resume_schedule(name: &str) -> Self {
        Self::of("schedule.resume", Subject::Schedule(name.to_owned()))
    }

    /// Runs a schedule once, independently of its ticks.
    #[must_use]
    pub fn run_schedule(name: &str) -> Self {
        Self::of("schedule.run", Subject::Tick(name.to_owned()))
    }

    /// Stores the definition of a bulk job.
    #[must_use]
    pub fn put_bulk(name: &str) -> Self {
        Self::of("bulk.put", Subject::Bulk(name.to_owned()))
    }

    /// Removes the definition of a bulk job.
    #[must_use]
    pub fn remove_bulk(name: &str) -> Self {
        Self::of("bulk.remove", Subject::Bulk(name.to_owned()))
    }

    /// Starts a run of a bulk job.
    #[must_use]
    pub const fn start_bulk(job: JobId) -> Self {
        Self::of("bulk.start", Subject::NewJob(job))
    }

    /// Changes the settings of a run of a bulk job.
    #[must_use]
    pub const fn set_bulk(job: JobId) -> Self {
        Self::of("bulk.set", Subject::BulkSettings(job))
    }

    /// Starts a run over the failures of this run.
    #[must_use]
    pub const fn retry_bulk_failures(job: JobId) -> Self {
        Self::of("bulk.retry_failures", Subject::NewJob(job))
    }

    /// Cancels the statement that a run is executing.
    #[must_use]
    pub const fn interrupt_bulk(job: JobId) -> Self {
        Self::of("bulk.interrupt", Subject::NewJob(job))
    }

    /// Defines a version of a DAG as the latest one.
    #[must_use]
    pub fn define_dag(name: &str) -> Self {
        Self::of("dag.define", Subject::Dag(name.to_owned()))
    }

    /// Starts a batch.
    #[must_use]
    pub const fn start_batch(batch: BatchId) -> Self {
        Self::of("batch.start", Subject::NewBatch(batch))
    }

    /// Sends a signal to a batch.
    #[must_use]
    pub const fn signal_batch(batch: BatchId) -> Self {
        Self::of("batch.signal", Subject::Batch(batch))
    }

    /// Applies an operator's operation to a batch.
    #[must_use]
    pub const fn operate_batch(operation: &BatchOperation) -> Self {
        let what = match operation.what {
            BatchVerb::Abort => "batch.abort",
            BatchVerb::Resume => "batch.resume",
            BatchVerb::Cancel { .. } => "batch.cancel",
            BatchVerb::Mark { .. } => "batch.mark",
            BatchVerb::Rerun { .. } | BatchVerb::RerunFailed { .. } | BatchVerb::RerunIn { .. } => {
                "batch.rerun"
            }
        };
        Self::of(what, Subject::Batch(operation.batch))
    }

    /// Emits events.
    #[must_use]
    pub fn emit(events: &[NewEvent]) -> Self {
        let first = events.first().map(|event| &event.aggregate);
        let subject = match first.filter(|&first| events.iter().all(|event| event.aggregate == *first)) {
            Some(aggregate) => Subject::Aggregate(aggregate.clone()),
            None => Subject::Store,
        };
        Self::of("event.emit", subject)
    }

    /// Pauses a subscription.
    #[must_use]
    pub fn pause_subscription(name: &str) -> Self {
        Self::of("subscription.pause", Subject::Subscription(name.to_owned()))
    }

    /// Resumes a paused subscription.
    #[must_use]
    pub fn resume_subscription(name: &str) -> Self {
        Self::of("subscription.resume", Subject::Subscription(name.to_owned()))
    }

    /// Removes a subscription.
    #[must_use]
    pub fn remove_subscription(name: &str) -> Self {
        Self::of("subscription.remove", Subject::Subscription(name.to_owned()))
    }

    /// Publishes events again.
    #[must_use]
    pub fn replay(subscription: &str) -> Self {
        Self::of("subscription.replay", Subject::Subscription(subscription.to_owned()))
    }

    /// Retries, skips or edits the first event of a parked aggregate.
    #[must_use]
    pub fn change_parked(subscription: &str, aggregate: &Aggregate, verb: &ParkedVerb) -> Self {
        let what = match verb {
            ParkedVerb::Retry => "parked.retry",
            ParkedVerb::Skip => "parked.skip",
            ParkedVerb::Edit(_) => "parked.edit",
        };
        Self::of(what, Subject::Parked(subscription.to_owned(), aggregate.clone()))
    }

    /// Retries or drops a dead letter of a subscription.
    #[must_use]
    pub fn change_dead(subscription: &str, event: EventId, verb: DeadVerb) -> Self {
        let what = match verb {
            DeadVerb::Retry => "dead_event.retry",
            DeadVerb::Drop => "dead_event.drop",
        };
        Self::of(what, Subject::DeadEvent(subscription.to_owned(), event))
    }

    /// Accepts a log from another server as it is.
    #[must_use]
    pub const fn reseed() -> Self {
        Self::of("log.reseed", Subject::Store)
    }

    /// Deletes a portion of the log.
    #[must_use]
    pub const fn prune_log() -> Self {
        Self::of("log.prune", Subject::Store)
    }

    /// Changes the settings of a consumer.
    #[must_use]
    pub fn put_consumer(name: &str) -> Self {
        Self::of("consumer.put", Subject::Consumer(name.to_owned()))
    }

    /// Sets the event of an aggregate from which on a consumer processes events.
    #[must_use]
    pub fn expect_from(consumer: &str, aggregate: &Aggregate) -> Self {
        Self::of("inbox.expect", Subject::Checkpoint(consumer.to_owned(), aggregate.clone()))
    }

    /// Retries dead letters of inboxes.
    #[must_use]
    pub fn retry_letters(letters: &[LetterId]) -> Self {
        Self::of("inbox.retry", Subject::Letters(letters.to_vec()))
    }

    /// Drops dead letters of inboxes.
    #[must_use]
    pub fn drop_letters(letters: &[LetterId]) -> Self {
        Self::of("inbox.drop", Subject::Letters(letters.to_vec()))
    }

    /// Repairs violations of a check.
    #[must_use]
    pub const fn repair(check: Check) -> Self {
        Self::of("doctor.repair", Subject::Check(check))
    }
}
