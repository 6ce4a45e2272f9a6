//! The calls, one function for each.

use std::collections::BTreeMap;
use std::time::Duration;

use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::{NewSignal, SignalResult, Signaled};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, Emitted, Event, NewEvent};
use milepost_core::ident::{BatchId, EventId, JobId, Run};
use milepost_core::inbox::{Received, check_consumer, check_position, check_received};
use milepost_core::job::duplicate::OnDuplicate;
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};
use milepost_core::port::{Operated, StoreResult};
use milepost_core::sql;
use milepost_core::trace::Traceparent;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Call, argument, parsed};

/// The members of a job in the argument.
#[derive(Serialize)]
struct JobArgument<'j> {
    id: JobId,
    kind: &'j str,
    queue: &'j str,
    payload: &'j RawValue,
    priority: u8,
    key: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_duplicate: Option<OnDuplicate>,
    group: Option<&'j str>,
    run_at: Option<jiff::Timestamp>,
    delay_ms: Option<i64>,
    max_attempts: i32,
    timeout_ms: Option<i64>,
    nominal_at: Option<jiff::Timestamp>,
    traceparent: Option<String>,
}

impl<'j> JobArgument<'j> {
    fn of(job: &'j NewJob) -> Self {
        let (run_at, delay_ms) = match job.start {
            StartAt::At(at) => (Some(at), None),
            StartAt::After(delay) => (None, Some(whole_ms(delay))),
            _ => (None, None),
        };
        Self {
            id: job.id,
            kind: &job.kind,
            queue: &job.queue,
            payload: &job.payload,
            priority: job.priority.get(),
            key: job.key.as_deref(),
            on_duplicate: job.on_duplicate,
            group: job.group.as_deref(),
            run_at,
            delay_ms,
            max_attempts: job.max_attempts.cast_signed(),
            timeout_ms: job.timeout.map(whole_ms),
            nominal_at: job.nominal_at,
            traceparent: job.traceparent.map(|it| it.to_string()),
        }
    }
}

/// Enqueues a job.
///
/// # Errors
/// [`Invalid`](StoreError::Invalid) describes the problem with the job.
pub fn enqueue(job: &NewJob) -> StoreResult<Call<Enqueued>> {
    let Call { sql, arguments, .. } = enqueue_many(std::slice::from_ref(job))?;
    Ok(Call { sql, arguments, convert: |text| parsed::<[Enqueued; 1]>(text).map(|[enqueued]| enqueued) })
}

/// Enqueues jobs, all or none, and returns the results in the same order.
///
/// # Errors
/// [`Invalid`](StoreError::Invalid) names the first job that cannot be accepted.
pub fn enqueue_many(jobs: &[NewJob]) -> StoreResult<Call<Vec<Enqueued>>> {
    for (index, job) in jobs.iter().enumerate() {
        job.check(PAYLOAD_BYTES_MAX).map_err(|invalid| StoreError::Invalid { index, invalid })?;
    }
    let arguments = argument(&jobs.iter().map(JobArgument::of).collect::<Vec<_>>())?;
    let has_rules = jobs.iter().any(|job| job.on_duplicate.is_some());
    let sql = if has_rules { sql!("enqueue_many_by_key") } else { sql!("enqueue_many") };
    Ok(Call { sql, arguments, convert: parsed })
}

/// Cancels a job. A running one is stopped by its worker, and fenced after the grace time. Needs the role `milepost_worker`.
#[must_use]
pub fn cancel(job: JobId, reason: Option<&str>, grace: Duration) -> Call<Operated> {
    #[derive(Deserialize)]
    struct Answer {
        state: String,
    }
    let arguments = json!({ "job": job, "reason": reason, "grace_ms": whole_ms(grace) }).to_string();
    let convert = |text: &str| {
        let Answer { state } = parsed(text)?;
        Ok(match state.as_str() {
            "stop_requested" => Operated::StopRequested,
            state => Operated::Done(parsed(&json!(state).to_string())?),
        })
    };
    Call { sql: sql!("cancel"), arguments, convert }
}

/// Ends a run as succeeded, in the transaction of its effects. Needs the role `milepost_worker`. Returns false if the run no longer holds
/// the job: roll back then.
#[must_use]
pub fn complete(run: Run, result: Option<&Value>) -> Call<bool> {
    #[derive(Deserialize)]
    struct Answer {
        held: bool,
    }
    // As text: a result that is null is not the same as none.
    let result = result.map(Value::to_string);
    let arguments = json!({ "job": run.job, "run_token": run.token.0, "result": result }).to_string();
    Call { sql: sql!("complete"), arguments, convert: |text| parsed(text).map(|Answer { held }| held) }
}

/// Emits an event. Until the commit, other transactions that emit for its aggregate wait, so emit late in a transaction.
///
/// # Errors
/// [`Event`](StoreError::Event) describes the problem with the event.
pub fn emit(event: &NewEvent) -> StoreResult<Call<Emitted>> {
    let Call { sql, arguments, .. } = emit_many(std::slice::from_ref(event))?;
    let convert = |text: &str| parsed::<[EmittedAnswer; 1]>(text).map(|[emitted]| emitted.into());
    Ok(Call { sql, arguments, convert })
}

/// Emits events, all or none, and returns the results in the same order.
///
/// # Errors
/// [`Event`](StoreError::Event) names the first event that cannot be emitted.
pub fn emit_many(events: &[NewEvent]) -> StoreResult<Call<Vec<Emitted>>> {
    #[derive(Serialize)]
    struct EventArgument<'e> {
        event_id: EventId,
        aggregate_type: &'e str,
        aggregate_id: &'e str,
        aggregate_seq: Option<i64>,
        gap_allowed: bool,
        event_type: &'e str,
        payload: &'e RawValue,
        headers: Option<Value>,
    }
    NewEvent::check_all(events, PAYLOAD_BYTES_MAX)?;
    let events = events.iter().map(|event| EventArgument {
        event_id: event.id,
        aggregate_type: &event.aggregate.kind,
        aggregate_id: &event.aggregate.id,
        aggregate_seq: event.sequence,
        gap_allowed: event.gap_allowed,
        event_type: &event.event_type,
        payload: &event.payload,
        headers: (!event.headers.is_empty()).then(|| json!(event.headers)),
    });
    let arguments = argument(&events.collect::<Vec<_>>())?;
    let convert =
        |text: &str| Ok(parsed::<Vec<EmittedAnswer>>(text)?.into_iter().map(Emitted::from).collect());
    Ok(Call { sql: sql!("emit_many"), arguments, convert })
}

#[derive(Deserialize)]
struct EmittedAnswer {
    sequence: i64,
    duplicate: bool,
}

impl From<EmittedAnswer> for Emitted {
    fn from(EmittedAnswer { sequence, duplicate }: EmittedAnswer) -> Self {
        Self { sequence, duplicate }
    }
}

/// Records that a consumer processes an event, and returns whether it is the first time.
///
/// # Errors
/// [`Inbox`](StoreError::Inbox) describes the problem with the name.
pub fn once(consumer: &str, event: EventId) -> StoreResult<Call<bool>> {
    #[derive(Deserialize)]
    struct Answer {
        first: bool,
    }
    check_consumer(consumer)?;
    let arguments = json!({ "consumer": consumer, "event_id": event }).to_string();
    Ok(Call { sql: sql!("once"), arguments, convert: |text| parsed(text).map(|Answer { first }| first) })
}

/// Receives an event, if it is the next one of its aggregate. After a result with [`more`](Received::more), receive the kept events with
/// [`next_parked`].
///
/// # Errors
/// [`Inbox`](StoreError::Inbox) describes the problem with the event or the name.
pub fn receive(consumer: &str, event: &Event) -> StoreResult<Call<Received>> {
    #[derive(Serialize)]
    struct Argument<'e> {
        consumer: &'e str,
        event: &'e Event,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Verdict {
        Apply,
        Duplicate,
        Parked,
        Late,
    }
    #[derive(Deserialize)]
    struct Answer {
        verdict: Verdict,
        more: bool,
    }
    check_received(consumer, event)?;
    let arguments = argument(&Argument { consumer, event })?;
    let convert = |text: &str| {
        let Answer { verdict, more } = parsed(text)?;
        Ok(match verdict {
            Verdict::Apply => Received::Apply { more },
            Verdict::Duplicate => Received::Duplicate,
            Verdict::Parked => Received::Parked { more },
            Verdict::Late => Received::Late,
        })
    };
    Ok(Call { sql: sql!("receive"), arguments, convert })
}

/// Receives the kept event that follows the last received one of an aggregate; `None` if there is none.
///
/// # Errors
/// [`Inbox`](StoreError::Inbox) describes the problem with a name.
pub fn next_parked(consumer: &str, aggregate: &Aggregate) -> StoreResult<Call<Option<Event>>> {
    #[derive(Deserialize)]
    struct Answer {
        event: Option<Kept>,
    }
    #[derive(Deserialize)]
    struct Kept {
        event_id: EventId,
        aggregate_type: String,
        aggregate_id: String,
        aggregate_seq: i64,
        event_type: String,
        payload: Box<RawValue>,
        headers: BTreeMap<String, String>,
        emitted_at: jiff::Timestamp,
    }
    check_position(consumer, aggregate, 1)?;
    let Aggregate { kind, id } = aggregate;
    let arguments = json!({ "consumer": consumer, "aggregate_type": kind, "aggregate_id": id }).to_string();
    let convert = |text: &str| {
        let Answer { event } = parsed(text)?;
        Ok(event.map(|kept| Event {
            id: kept.event_id,
            aggregate: Aggregate::new(kept.aggregate_type, kept.aggregate_id),
            sequence: kept.aggregate_seq,
            event_type: kept.event_type,
            payload: kept.payload,
            headers: kept.headers,
            emitted_at: kept.emitted_at,
        }))
    };
    Ok(Call { sql: sql!("next_parked"), arguments, convert })
}

/// Starts a batch. A DAG with a schema for its input is refused with [`InvalidInput`](super::Refusal::InvalidInput), because SQL cannot check
/// it: start its batches through `milepost-postgres` or over HTTP.
///
/// # Errors
/// [`Batch`](StoreError::Batch) describes the problem with the batch.
pub fn start_batch(batch: &NewBatch) -> StoreResult<Call<Started>> {
    #[derive(Serialize)]
    struct Argument<'b> {
        id: BatchId,
        dag: &'b str,
        key: Option<&'b str>,
        version: Option<String>,
        input: &'b RawValue,
        nominal_at: Option<jiff::Timestamp>,
        nominal_zone: Option<&'b str>,
        traceparent: Option<String>,
    }
    #[derive(Deserialize)]
    struct Answer {
        batch: BatchId,
        duplicate: bool,
    }
    batch.check(PAYLOAD_BYTES_MAX)?;
    let nominal = batch.nominal.as_ref();
    let arguments = argument(&Argument {
        id: batch.id,
        dag: &batch.dag,
        key: batch.key.as_deref(),
        version: batch.version.map(|version| version.to_string()),
        input: &batch.input,
        nominal_at: nominal.map(|nominal| nominal.at),
        nominal_zone: nominal.map(|nominal| nominal.zone.as_str()),
        traceparent: batch.traceparent.map(|it| it.to_string()),
    })?;
    let convert = |text: &str| parsed(text).map(|Answer { batch, duplicate }| Started { batch, duplicate });
    Ok(Call { sql: sql!("start_batch"), arguments, convert })
}

/// Sends a signal to a batch, whose task waits for it. A wait with a schema for the payload is refused with
/// [`InvalidInput`](super::Refusal::InvalidInput), because SQL cannot check it: send its signals through `milepost-postgres` or over HTTP.
///
/// # Errors
/// [`Batch`](StoreError::Batch) describes the problem with the signal.
pub fn signal(signal: &NewSignal) -> StoreResult<Call<SignalResult>> {
    #[derive(Serialize)]
    struct Argument<'s> {
        batch: BatchId,
        name: &'s str,
        payload: &'s RawValue,
        id: &'s str,
    }
    signal.check()?;
    let NewSignal { batch, name, payload, id } = signal;
    let arguments = argument(&Argument { batch: *batch, name, payload, id })?;
    Ok(Call {
        sql: sql!("signal"),
        arguments,
        convert: |text| parsed(text).map(|Signaled { result }| result),
    })
}

/// A run of a bulk job to be started.
#[derive(Clone, Debug, Default)]
pub struct BulkRun {
    /// The name of the bulk job.
    pub name: String,
    /// The parameters that its SQL uses, by name.
    pub parameters: serde_json::Map<String, Value>,
    /// At most one run of the bulk job ever has this key.
    pub key: Option<String>,
    /// When it starts; `None`: now.
    pub run_at: Option<jiff::Timestamp>,
    /// Its priority; `None`: that of the bulk job.
    pub priority: Option<Priority>,
}

/// Starts a run of a bulk job.
#[must_use]
pub fn start_bulk(run: &BulkRun) -> Call<Enqueued> {
    let arguments = json!({
        "name": run.name, "parameters": run.parameters, "key": run.key, "run_at": run.run_at,
        "priority": run.priority.map(Priority::get),
        "traceparent": Traceparent::current().map(|it| it.to_string()),
    });
    Call { sql: sql!("start_bulk"), arguments: arguments.to_string(), convert: parsed }
}
