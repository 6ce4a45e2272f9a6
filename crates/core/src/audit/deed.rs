//! What can be done, in the words of the audit, and what to look at to tell what it changed.

use std::fmt;

use crate::batch::operation::{BatchOperation, BatchVerb};
use crate::doctor::Check;
use crate::event::relay_listing::{DeadVerb, ParkedVerb};
use crate::event::{Aggregate, NewEvent};
use crate::ident::{BatchId, EventId, JobId};
use crate::inbox::listing::LetterId;
use crate::job::NewJob;
use crate::limit::Target;
use crate::transition::Verb;

/// All that can be done to a store by people: the words of [`Deed::what`].
pub const WHATS: [&str; 51] = [
    "job.create",
    "job.release",
    "job.cancel",
    "job.skip",
    "job.mark",
    "job.abort",
    "job.retry",
    "job.resume",
    "job.rerun",
    "job.snooze",
    "queue.pause",
    "queue.resume",
    "limit.put",
    "limit.remove",
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

/// Something that is done to a store: one row of audit, unless it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// What: a noun and a verb, as `job.cancel`.
    pub what: &'static str,
    /// To what.
    pub subject: Subject,
}

/// What is changed. Shown by how people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A job, by where it stands.
    Job(JobId),
    /// A job that comes into being, by its id alone.
    NewJob(JobId),
    /// A queue.
    Queue(String),
    /// The limit of a kind, a group or a class.
    Limit(Target),
    /// A schedule.
    Schedule(String),
    /// A tick of a schedule that somebody made, by the schedule's name alone.
    Tick(String),
    /// The definition of a bulk job.
    Bulk(String),
    /// What an operator set for a run of a bulk job.
    BulkSettings(JobId),
    /// A DAG, by its latest version.
    Dag(String),
    /// A batch.
    Batch(BatchId),
    /// A batch that comes into being, by its id alone.
    NewBatch(BatchId),
    /// A subscription.
    Subscription(String),
    /// An aggregate that is held back from a subscription.
    Parked(String, Aggregate),
    /// An event that was given up for a subscription.
    DeadEvent(String, EventId),
    /// The aggregate of which events are emitted.
    Aggregate(Aggregate),
    /// What a consumer of events wants.
    Consumer(String),
    /// Where a consumer is with an aggregate.
    Checkpoint(String, Aggregate),
    /// Dead letters of inboxes.
    Letters(Vec<LetterId>),
    /// What a repair mends.
    Check(Check),
    /// Many things, or the store as a whole.
    Store,
}

impl Subject {
    /// Its name; `None` where there is none.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Store => None,
            Self::Letters(letters) if letters.len() != 1 => None,
            named => Some(named.to_string()),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) | Self::NewJob(job) | Self::BulkSettings(job) => job.fmt(f),
            Self::Batch(batch) | Self::NewBatch(batch) => batch.fmt(f),
            Self::Queue(name)
            | Self::Schedule(name)
            | Self::Tick(name)
            | Self::Bulk(name)
            | Self::Dag(name)
            | Self::Subscription(name)
            | Self::Consumer(name) => f.write_str(name),
            Self::Limit(target) => target.fmt(f),
            Self::Aggregate(aggregate) => aggregate.fmt(f),
            Self::Parked(whose, aggregate) | Self::Checkpoint(whose, aggregate) => {
                write!(f, "{whose} {aggregate}")
            }
            Self::DeadEvent(subscription, event) => write!(f, "{subscription} {event}"),
            Self::Letters(letters) => letters
                .iter()
                .enumerate()
                .try_for_each(|(at, letter)| write!(f, "{}{letter}", if at == 0 { "" } else { " " })),
            Self::Check(check) => f.write_str(check.as_str()),
            Self::Store => f.write_str("the store"),
        }
    }
}

/// A deed for every verb of the ports that people use.
impl Deed {
    const fn of(what: &'static str, subject: Subject) -> Self {
        Self { what, subject }
    }

    /// Jobs are enqueued.
    #[must_use]
    pub fn create_jobs(jobs: &[NewJob]) -> Self {
        let subject = match jobs {
            [job] => Subject::NewJob(job.id),
            _ => Subject::Store,
        };
        Self::of("job.create", subject)
    }

    /// An operator does this to a job.
    #[must_use]
    pub const fn operate(job: JobId, verb: Verb) -> Self {
        let what = match verb {
            Verb::Release => "job.release",
            Verb::Cancel => "job.cancel",
            Verb::Skip => "job.skip",
            Verb::Mark => "job.mark",
            Verb::Abort => "job.abort",
            Verb::RetryNow => "job.retry",
            Verb::Resume => "job.resume",
            Verb::Rerun => "job.rerun",
            Verb::Snooze => "job.snooze",
            // What workers do; no store lets an operator do it.
            _ => "job.change",
        };
        Self::of(what, Subject::Job(job))
    }

    /// A queue is paused, or goes on.
    #[must_use]
    pub fn pause_queue(queue: &str, paused: bool) -> Self {
        let what = if paused { "queue.pause" } else { "queue.resume" };
        Self::of(what, Subject::Queue(queue.to_owned()))
    }

    /// A limit is made or changed.
    #[must_use]
    pub fn put_limit(target: &Target) -> Self {
        Self::of("limit.put", Subject::Limit(target.clone()))
    }

    /// A limit is removed.
    #[must_use]
    pub fn remove_limit(target: &Target) -> Self {
        Self::of("limit.remove", Subject::Limit(target.clone()))
    }

    /// A schedule is made or changed.
    #[must_use]
    pub fn put_schedule(name: &str) -> Self {
        Self::of("schedule.put", Subject::Schedule(name.to_owned()))
    }

    /// A schedule is removed.
    #[must_use]
    pub fn remove_schedule(name: &str) -> Self {
        Self::of("schedule.remove", Subject::Schedule(name.to_owned()))
    }

    /// A schedule is stopped.
    #[must_use]
    pub fn pause_schedule(name: &str) -> Self {
        Self::of("schedule.pause", Subject::Schedule(name.to_owned()))
    }

    /// A paused schedule goes on.
    #[must_use]
    pub fn resume_schedule(name: &str) -> Self {
        Self::of("schedule.resume", Subject::Schedule(name.to_owned()))
    }

    /// What a schedule makes is made beside its ticks.
    #[must_use]
    pub fn run_schedule(name: &str) -> Self {
        Self::of("schedule.run", Subject::Tick(name.to_owned()))
    }

    /// The definition of a bulk job is stored.
    #[must_use]
    pub fn put_bulk(name: &str) -> Self {
        Self::of("bulk.put", Subject::Bulk(name.to_owned()))
    }

    /// The definition of a bulk job is removed.
    #[must_use]
    pub fn remove_bulk(name: &str) -> Self {
        Self::of("bulk.remove", Subject::Bulk(name.to_owned()))
    }

    /// A run of a bulk job is started.
    #[must_use]
    pub const fn start_bulk(job: JobId) -> Self {
        Self::of("bulk.start", Subject::NewJob(job))
    }

    /// What a run may take is changed.
    #[must_use]
    pub const fn set_bulk(job: JobId) -> Self {
        Self::of("bulk.set", Subject::BulkSettings(job))
    }

    /// A run over the failures of this one is started.
    #[must_use]
    pub const fn retry_bulk_failures(job: JobId) -> Self {
        Self::of("bulk.retry_failures", Subject::NewJob(job))
    }

    /// The statement that a run is in is stopped.
    #[must_use]
    pub const fn interrupt_bulk(job: JobId) -> Self {
        Self::of("bulk.interrupt", Subject::NewJob(job))
    }

    /// A version of a DAG is made the latest.
    #[must_use]
    pub fn define_dag(name: &str) -> Self {
        Self::of("dag.define", Subject::Dag(name.to_owned()))
    }

    /// A batch is started.
    #[must_use]
    pub const fn start_batch(batch: BatchId) -> Self {
        Self::of("batch.start", Subject::NewBatch(batch))
    }

    /// An operator does this to a batch.
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

    /// Events are emitted.
    #[must_use]
    pub fn emit(events: &[NewEvent]) -> Self {
        let first = events.first().map(|event| &event.aggregate);
        let subject = match first.filter(|&first| events.iter().all(|event| event.aggregate == *first)) {
            Some(aggregate) => Subject::Aggregate(aggregate.clone()),
            None => Subject::Store,
        };
        Self::of("event.emit", subject)
    }

    /// A subscription is stopped.
    #[must_use]
    pub fn pause_subscription(name: &str) -> Self {
        Self::of("subscription.pause", Subject::Subscription(name.to_owned()))
    }

    /// A paused subscription goes on.
    #[must_use]
    pub fn resume_subscription(name: &str) -> Self {
        Self::of("subscription.resume", Subject::Subscription(name.to_owned()))
    }

    /// A subscription is forgotten.
    #[must_use]
    pub fn remove_subscription(name: &str) -> Self {
        Self::of("subscription.remove", Subject::Subscription(name.to_owned()))
    }

    /// Events are published again.
    #[must_use]
    pub fn replay(subscription: &str) -> Self {
        Self::of("subscription.replay", Subject::Subscription(subscription.to_owned()))
    }

    /// Something is done with the first event of a parked aggregate.
    #[must_use]
    pub fn change_parked(subscription: &str, aggregate: &Aggregate, verb: &ParkedVerb) -> Self {
        let what = match verb {
            ParkedVerb::Retry => "parked.retry",
            ParkedVerb::Skip => "parked.skip",
            ParkedVerb::Edit(_) => "parked.edit",
        };
        Self::of(what, Subject::Parked(subscription.to_owned(), aggregate.clone()))
    }

    /// Something is done with an event that was given up.
    #[must_use]
    pub fn change_dead(subscription: &str, event: EventId, verb: DeadVerb) -> Self {
        let what = match verb {
            DeadVerb::Retry => "dead_event.retry",
            DeadVerb::Drop => "dead_event.drop",
        };
        Self::of(what, Subject::DeadEvent(subscription.to_owned(), event))
    }

    /// A log from another server is taken as it is.
    #[must_use]
    pub const fn reseed() -> Self {
        Self::of("log.reseed", Subject::Store)
    }

    /// A portion of the log is forgotten.
    #[must_use]
    pub const fn prune_log() -> Self {
        Self::of("log.prune", Subject::Store)
    }

    /// What a consumer wants is said.
    #[must_use]
    pub fn put_consumer(name: &str) -> Self {
        Self::of("consumer.put", Subject::Consumer(name.to_owned()))
    }

    /// It is said from which event on a consumer takes in those of an aggregate.
    #[must_use]
    pub fn expect_from(consumer: &str, aggregate: &Aggregate) -> Self {
        Self::of("inbox.expect", Subject::Checkpoint(consumer.to_owned(), aggregate.clone()))
    }

    /// Dead letters wait again.
    #[must_use]
    pub fn retry_letters(letters: &[LetterId]) -> Self {
        Self::of("inbox.retry", Subject::Letters(letters.to_vec()))
    }

    /// Dead letters are dropped.
    #[must_use]
    pub fn drop_letters(letters: &[LetterId]) -> Self {
        Self::of("inbox.drop", Subject::Letters(letters.to_vec()))
    }

    /// Breaches of a check are mended.
    #[must_use]
    pub const fn repair(check: Check) -> Self {
        Self::of("doctor.repair", Subject::Check(check))
    }
}
