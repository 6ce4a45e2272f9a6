//! Work that events start: a job, a batch or a signal for each event, made from a template over the event.
//!
//! See `docs/adr/0042-events-start-work.md` for the reasons.

mod condition;
mod template;

use serde_json::value::RawValue;

pub use condition::Condition;
pub use template::{BatchSpec, InvalidWork, JobSpec, SignalSpec, WorkFault, WorkSpec, WorkTemplate};

use crate::batch::start::NewBatch;
use crate::batch::wait::NewSignal;
use crate::error::StoreError;
use crate::event::Event;
use crate::ident::EventId;
use crate::job::NewJob;
use crate::json::Exact;
use crate::named::named_enum;

/// The maximum number of events that start their work in one transaction.
pub const WORKS_AT_ONCE_MAX: usize = 500;
/// The maximum size of their payloads, in bytes, unless there is only one.
pub const WORK_BYTES_MAX: usize = 4 * 1024 * 1024;

named_enum! {
    /// What an event starts.
    WorkKind {
        /// A job.
        Job = "job",
        /// A batch.
        Batch = "batch",
        /// A signal for a batch.
        Signal = "signal",
    }
}

/// The work that one event starts.
#[derive(Clone, Debug)]
pub struct EventWork {
    /// The event.
    pub event: EventId,
    /// The work.
    pub work: Work,
}

/// What an event starts.
#[derive(Clone, Debug)]
pub enum Work {
    /// A job to enqueue.
    Job(NewJob),
    /// A batch to start.
    Batch(NewBatch),
    /// A signal for a batch.
    Signal(NewSignal),
}

impl Work {
    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> WorkKind {
        match self {
            Self::Job(_) => WorkKind::Job,
            Self::Batch(_) => WorkKind::Batch,
            Self::Signal(_) => WorkKind::Signal,
        }
    }

    /// Returns the id of the job or batch; of a signal, that of its batch.
    #[must_use]
    pub const fn id(&self) -> uuid::Uuid {
        match self {
            Self::Job(job) => job.id.0,
            Self::Batch(batch) => batch.id.0,
            Self::Signal(signal) => signal.batch.0,
        }
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] or [`StoreError::Batch`] with the reason.
    pub fn check(&self, bytes_max: usize) -> Result<(), StoreError> {
        match self {
            Self::Job(job) => {
                job.check(bytes_max).map_err(|invalid| StoreError::Invalid { index: 0, invalid })
            }
            Self::Batch(batch) => Ok(batch.check(bytes_max)?),
            Self::Signal(signal) => Ok(signal.check()?),
        }
    }

    /// Returns the size of its payload, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Job(job) => job.payload.get().len(),
            Self::Batch(batch) => batch.input.get().len(),
            Self::Signal(signal) => signal.payload.get().len(),
        }
    }
}

/// What a refusal of a store means for the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The event itself is the cause: another attempt cannot succeed.
    OfEvent,
    /// Another attempt may succeed, for example when a DAG has been defined or an open transaction has ended.
    ForNow,
    /// The store accepts nothing at present: no event is the cause.
    StoreDown,
}

impl Refusal {
    /// Returns what an error of [`start_work`](crate::port::RelayStore::start_work) means.
    #[must_use]
    pub const fn of(error: &StoreError) -> Self {
        use crate::batch::error::InvalidBatch;
        use crate::job::error::InvalidJob;
        match error {
            StoreError::Unavailable { .. } | StoreError::Schema(_) | StoreError::Move(_) => Self::StoreDown,
            // The kind is part of the configuration, not of the event. PostgreSQL returns it as a text.
            StoreError::Invalid {
                invalid: InvalidJob::BulkJob { .. } | InvalidJob::Refused { .. }, ..
            } => Self::ForNow,
            StoreError::Invalid { .. } | StoreError::Refused { .. } => Self::OfEvent,
            StoreError::Batch(
                InvalidBatch::Input { .. } | InvalidBatch::Signal { .. } | InvalidBatch::Name(_),
            ) => Self::OfEvent,
            _ => Self::ForNow,
        }
    }
}

/// Returns the value of the variable `event`.
fn variable(event: &Event) -> Result<Exact, serde_json::Error> {
    let text = |text: &str| Exact::from(serde_json::Value::from(text));
    let headers = event.headers.iter().map(|(name, value)| (name.clone(), text(value)));
    let members = [
        ("id", text(&event.id.to_string())),
        ("type", text(&event.event_type)),
        ("aggregate_type", text(&event.aggregate.kind)),
        ("aggregate_id", text(&event.aggregate.id)),
        ("sequence", Exact::from(serde_json::Value::from(event.sequence))),
        ("payload", Exact::read(event.payload.get())?),
        ("headers", Exact::object(headers)),
        ("emitted_at", text(&event.emitted_at.to_string())),
    ];
    Ok(Exact::object(members.into_iter().map(|(name, value)| (name.to_owned(), value))))
}

/// Returns JSON text as it is stored.
fn raw(value: &Exact) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::error::InvalidBatch;
    use crate::error::Cause;
    use crate::job::error::InvalidJob;

    #[test]
    fn the_cause_of_a_refusal_decides_whether_it_is_tried_again() {
        let cause = || Cause::from("why");
        let unavailable = StoreError::Unavailable { place: "db".to_owned(), cause: cause() };
        assert_eq!(Refusal::of(&unavailable), Refusal::StoreDown);
        assert_eq!(Refusal::of(&StoreError::Held { verb: "enqueue", cause: cause() }), Refusal::ForNow);
        let too_large = InvalidJob::PayloadTooLarge { bytes: 2, bytes_max: 1 };
        assert_eq!(Refusal::of(&StoreError::Invalid { index: 0, invalid: too_large }), Refusal::OfEvent);
        let bulk = InvalidJob::BulkJob { kind: "notices".to_owned() };
        assert_eq!(Refusal::of(&StoreError::Invalid { index: 0, invalid: bulk }), Refusal::ForNow);
        let no_dag = InvalidBatch::NoSuchDag { name: "settlement".to_owned() };
        assert_eq!(Refusal::of(&no_dag.into()), Refusal::ForNow);
        let input = InvalidBatch::Input { why: "no".to_owned() };
        assert_eq!(Refusal::of(&input.into()), Refusal::OfEvent);
    }
}
