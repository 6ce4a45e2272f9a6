//! The objects of audited actions, whose state is recorded before and after each action.

use std::fmt;

use crate::alert::AlertKey;
use crate::doctor::Check;
use crate::event::Aggregate;
use crate::ident::{BatchId, EventId, JobId};
use crate::inbox::listing::LetterId;
use crate::limit::Target;
use crate::retention::Retained;

/// The object of an action. It is displayed by its name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A job, with its state.
    Job(JobId),
    /// A job to be created, with its id only.
    NewJob(JobId),
    /// A queue.
    Queue(String),
    /// The limit of a kind, a group or a class.
    Limit(Target),
    /// The retention period of this.
    Retention(Retained),
    /// An alert, with its silence.
    Alert(AlertKey),
    /// A schedule.
    Schedule(String),
    /// A manual tick of a schedule, with the schedule's name only.
    Tick(String),
    /// The definition of a bulk job.
    Bulk(String),
    /// The settings that an operator chose for a run of a bulk job.
    BulkSettings(JobId),
    /// A DAG, with its latest version.
    Dag(String),
    /// A batch.
    Batch(BatchId),
    /// A batch to be created, with its id only.
    NewBatch(BatchId),
    /// A subscription.
    Subscription(String),
    /// An aggregate that is parked for a subscription.
    Parked(String, Aggregate),
    /// A dead letter of a subscription.
    DeadEvent(String, EventId),
    /// The aggregate of which events are emitted.
    Aggregate(Aggregate),
    /// The settings of a consumer of events.
    Consumer(String),
    /// The position of a consumer in an aggregate.
    Checkpoint(String, Aggregate),
    /// Dead letters of inboxes.
    Letters(Vec<LetterId>),
    /// The check that a repair fixes.
    Check(Check),
    /// Several objects, or the store as a whole.
    Store,
}

impl Subject {
    /// Returns its name; `None` if it has none.
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
            Self::Alert(key) => key.fmt(f),
            Self::Retention(of) => f.write_str(of.as_str()),
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
