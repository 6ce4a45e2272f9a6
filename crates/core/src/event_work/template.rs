//! Templates from which the work of each event is made.

use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{EventWork, Work, raw, variable};
use crate::batch::error::InvalidBatch;
use crate::batch::start::NewBatch;
use crate::batch::wait::{NewSignal, SIGNAL_BYTES_MAX};
use crate::dag::expression::{EVENT_STEPS_MAX, Over, Scope, Values};
use crate::dag::template::{InvalidTemplate, Template};
use crate::event::Event;
use crate::ident::BatchId;
use crate::job::error::InvalidJob;
use crate::job::{
    MAX_ATTEMPTS_DEFAULT, NAME_BYTES_MAX, NewJob, PAYLOAD_BYTES_MAX, Priority, QUEUE_DEFAULT, check_attempts,
    check_name, check_queue, check_timeout,
};
use crate::json::Exact;
use crate::trace::TRACEPARENT;

/// The payload, if none is given: the whole event.
const WHOLE_EVENT: &str = "${ event }";

/// What a subscription starts for each event. Texts and payloads can contain `${ … }` with expressions over `event`.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkSpec {
    /// A job.
    Job(JobSpec),
    /// A batch.
    Batch(BatchSpec),
    /// A signal for a batch.
    Signal(SignalSpec),
}

/// The jobs of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Their kind. Not a template: an event must not choose which handler runs.
    pub kind: String,
    /// Their queue; not a template.
    pub queue: Option<String>,
    /// Their payload; `None`: the event.
    pub payload: Option<Value>,
    /// Their key.
    pub key: Option<String>,
    /// Their group.
    pub group: Option<String>,
    /// Their priority.
    pub priority: Option<Priority>,
    /// Their maximum number of attempts.
    pub max_attempts: Option<u32>,
    /// The time limit of each attempt.
    pub timeout: Option<Duration>,
}

/// The batches of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSpec {
    /// Their DAG; not a template.
    pub dag: String,
    /// Their key.
    pub key: Option<String>,
    /// Their input; `None`: the event.
    pub input: Option<Value>,
}

/// The signals of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalSpec {
    /// The id of the batch.
    pub batch: String,
    /// The name of the signal; not a template.
    pub name: String,
    /// The payload; `None`: the event.
    pub payload: Option<Value>,
}

/// A template that is invalid, whatever the event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidWork {
    /// An expression is invalid.
    #[error("{0}")]
    Template(#[from] InvalidTemplate),
    /// A property of the jobs is invalid.
    #[error("{0}")]
    Job(#[from] InvalidJob),
}

impl InvalidWork {
    /// Returns the location of the fault in the work, as a JSON pointer, if it is in a template.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Template(invalid) => invalid.pointer(),
            Self::Job(_) => None,
        }
    }
}

/// Why an event cannot start its work; for operators.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no work can be made of the event: {0}")]
pub struct WorkFault(String);

/// A compiled [`WorkSpec`].
#[derive(Clone, Debug, PartialEq)]
pub struct WorkTemplate {
    spec: WorkSpec,
    /// The members of the work that are templates, as one object.
    members: Template,
}

impl WorkTemplate {
    /// Compiles what a subscription starts.
    ///
    /// # Errors
    /// [`InvalidWork`] with the first fault.
    pub fn compile(spec: WorkSpec) -> Result<Self, InvalidWork> {
        let mut members = Map::new();
        let whole = || Value::from(WHOLE_EVENT);
        let mut add =
            |name: &str, value: Option<Value>| members.extend(value.map(|it| (name.to_owned(), it)));
        match &spec {
            WorkSpec::Job(job) => {
                check_name("kind", &job.kind, NAME_BYTES_MAX)?;
                job.queue.as_deref().map_or(Ok(()), check_queue)?;
                job.max_attempts.map_or(Ok(()), check_attempts)?;
                check_timeout(job.timeout)?;
                add("payload", Some(job.payload.clone().unwrap_or_else(whole)));
                add("key", job.key.clone().map(Value::from));
                add("group", job.group.clone().map(Value::from));
            }
            WorkSpec::Batch(batch) => {
                check_name("name of the DAG", &batch.dag, NAME_BYTES_MAX)?;
                add("input", Some(batch.input.clone().unwrap_or_else(whole)));
                add("key", batch.key.clone().map(Value::from));
            }
            WorkSpec::Signal(signal) => {
                check_name("name of the signal", &signal.name, NAME_BYTES_MAX)?;
                add("payload", Some(signal.payload.clone().unwrap_or_else(whole)));
                add("batch", Some(Value::from(signal.batch.clone())));
            }
        }
        let members = Template::compile_over(&Value::Object(members), Over::Event)?;
        Ok(Self { spec, members })
    }

    /// Returns the work of an event, which follows from the event's trace. Takes up to about 20 ms.
    ///
    /// # Errors
    /// [`WorkFault`] when a template cannot be evaluated for this event, or when the result is not valid.
    pub fn work_of(&self, event: &Event) -> Result<EventWork, WorkFault> {
        let work = self.make(event).map_err(WorkFault)?;
        Ok(EventWork { event: event.id, work })
    }

    /// Returns whether each event needs its own transaction.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        !matches!(self.spec, WorkSpec::Job(_))
    }

    fn make(&self, event: &Event) -> Result<Work, String> {
        let variable = variable(event).map_err(|e| e.to_string())?;
        let scope = Scope::new(&Values::of_event(&variable), EVENT_STEPS_MAX);
        let rendered = self.members.render(&scope, PAYLOAD_BYTES_MAX).map_err(|e| e.to_string())?;
        let mut members = Members(rendered);
        let traceparent = event.headers.get(TRACEPARENT).and_then(|text| text.parse().ok());
        match &self.spec {
            WorkSpec::Job(spec) => {
                let payload = members.json("payload")?;
                let mut job = NewJob::from_json(&spec.kind, payload).map_err(|e| e.to_string())?;
                job.queue = spec.queue.clone().unwrap_or_else(|| QUEUE_DEFAULT.to_owned());
                job.key = members.text("key")?;
                job.group = members.text("group")?;
                job.priority = spec.priority.unwrap_or_default();
                job.max_attempts = spec.max_attempts.unwrap_or(MAX_ATTEMPTS_DEFAULT);
                job.timeout = spec.timeout;
                job.traceparent = traceparent;
                job.check(PAYLOAD_BYTES_MAX).map_err(|e| e.to_string())?;
                Ok(Work::Job(job))
            }
            WorkSpec::Batch(spec) => {
                let input = raw(&members.take("input")).map_err(|e| e.to_string())?;
                let mut batch = NewBatch::new(&spec.dag, &input).map_err(|e| e.to_string())?;
                batch.key = members.text("key")?;
                batch.traceparent = traceparent;
                batch.check(PAYLOAD_BYTES_MAX).map_err(|e| e.to_string())?;
                Ok(Work::Batch(batch))
            }
            WorkSpec::Signal(spec) => {
                let batch =
                    members.text("batch")?.ok_or("/batch: it is null, but must be the id of a batch")?;
                let batch: BatchId =
                    batch.parse().map_err(|_| format!("/batch: {batch:?} is not the id of a batch"))?;
                let signal = self::signal(spec, batch, event, &members.take("payload"));
                signal.map(Work::Signal).map_err(|e| e.to_string())
            }
        }
    }
}

/// Returns a signal that counts once for each event.
fn signal(
    spec: &SignalSpec,
    batch: BatchId,
    event: &Event,
    payload: &Exact,
) -> Result<NewSignal, InvalidBatch> {
    let signal = NewSignal::new(batch, &spec.name).id(event.id.to_string()).payload(payload)?;
    signal.check()?;
    Ok(signal)
}

/// The rendered members of a template.
struct Members(Exact);

impl Members {
    /// Takes a member; null if it does not exist.
    fn take(&mut self, name: &str) -> Exact {
        let mut taken = Value::Null;
        let rest = std::mem::take(&mut self.0);
        self.0 = rest.changed(|members| {
            if let Some(member) = members.get_mut(name) {
                taken = member.take();
            }
        });
        Exact::of_marked(taken)
    }

    /// Takes a member as JSON text.
    fn json(&mut self, name: &str) -> Result<String, String> {
        raw(&self.take(name)).map(|raw| raw.get().to_owned()).map_err(|e| e.to_string())
    }

    /// Takes a member that is a text or a number, such as a key.
    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let value = self.take(name);
        match value.marked() {
            Value::Null => Ok(None),
            Value::String(_) | Value::Number(_) => {
                Ok(Some(value.as_text().map_or_else(|| value.to_string(), ToOwned::to_owned)))
            }
            _ => Err(format!("/{name}: it is neither a text nor a number")),
        }
    }
}

const _: () =
    assert!(SIGNAL_BYTES_MAX <= PAYLOAD_BYTES_MAX, "a rendered payload is checked again as a signal");

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::event::Aggregate;
    use crate::ident::EventId;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    pub(in super::super) fn event(payload: &str) -> Event {
        Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", "17"),
            sequence: 3,
            event_type: "order.placed".to_owned(),
            payload: RawValue::from_string(payload.to_owned()).unwrap(),
            headers: [(TRACEPARENT.to_owned(), TRACE.to_owned())].into(),
            emitted_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    fn job(kind: &str) -> JobSpec {
        JobSpec {
            kind: kind.to_owned(),
            queue: None,
            payload: None,
            key: None,
            group: None,
            priority: None,
            max_attempts: None,
            timeout: None,
        }
    }

    fn job_of(spec: JobSpec, event: &Event) -> Result<NewJob, String> {
        let made = WorkTemplate::compile(WorkSpec::Job(spec)).unwrap().work_of(event);
        match made.map_err(|e| e.to_string())?.work {
            Work::Job(job) => Ok(job),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_gets_its_values_from_the_event() {
        let spec = JobSpec {
            payload: Some(json!({"order": "${ event.aggregate_id }", "total": "${ event.payload.total }"})),
            key: Some("bill-${ event.aggregate_id }-${ event.sequence }".to_owned()),
            group: Some("${ event.aggregate_id }".to_owned()),
            ..job("bill")
        };
        let made = job_of(spec, &event(r#"{"total": 100000000000000000001}"#)).unwrap();
        assert_eq!(made.payload.get(), r#"{"order":"17","total":100000000000000000001}"#);
        assert_eq!((made.key.as_deref(), made.group.as_deref()), (Some("bill-17-3"), Some("17")));
        assert_eq!((made.kind.as_str(), made.queue.as_str()), ("bill", "default"));
        assert_eq!(made.traceparent.map(|it| it.to_string()).as_deref(), Some(TRACE));
    }

    #[test]
    fn a_job_without_a_payload_gets_the_event() {
        let event = event(r#"{"total": 1}"#);
        let made = job_of(job("bill"), &event).unwrap();
        let payload: Value = serde_json::from_str(made.payload.get()).unwrap();
        assert_eq!(payload["id"], json!(event.id));
        assert_eq!(
            (payload["type"].as_str(), payload["payload"]["total"].as_i64()),
            (Some("order.placed"), Some(1))
        );
        assert_eq!((made.key, made.group), (None, None));
    }

    #[test]
    fn a_key_can_be_left_out_for_some_events() {
        let key = Some("${ event.payload.rush ? event.aggregate_id : null }".to_owned());
        let made =
            |payload| job_of(JobSpec { key: key.clone(), ..job("bill") }, &event(payload)).unwrap().key;
        assert_eq!(made(r#"{"rush": true}"#).as_deref(), Some("17"));
        assert_eq!(made(r#"{"rush": false}"#), None);
    }

    #[test]
    fn an_event_of_which_no_work_can_be_made_is_refused_with_the_place() {
        let spec = || JobSpec { payload: Some(json!({"n": ["${ event.payload.n }"]})), ..job("bill") };
        let missing = job_of(spec(), &event("{}")).unwrap_err();
        assert!(missing.starts_with("no work can be made of the event: /payload/n/0: "), "{missing}");
        let large = format!(r#"{{"n": "{}"}}"#, "x".repeat(PAYLOAD_BYTES_MAX));
        assert!(job_of(spec(), &event(&large)).unwrap_err().contains("bytes"));
        let key = JobSpec { key: Some("${ event.payload }".to_owned()), ..job("bill") };
        let list = job_of(key.clone(), &event("[1]")).unwrap_err();
        assert!(list.ends_with("/key: it is neither a text nor a number"), "{list}");
        assert!(job_of(key, &event("\"\"")).unwrap_err().contains("it is empty"));
    }

    #[test]
    fn what_is_wrong_for_every_event_is_found_when_it_is_compiled() {
        let fault = |spec| WorkTemplate::compile(WorkSpec::Job(spec)).unwrap_err().to_string();
        let payload = Some(json!({"a": "${ events.id }"}));
        let unknown = fault(JobSpec { payload, ..job("bill") });
        assert!(unknown.starts_with("/payload/a: there is no variable \"events\""), "{unknown}");
        assert!(fault(job("")).contains("kind"));
        assert!(fault(JobSpec { max_attempts: Some(0), ..job("bill") }).contains("max_attempts"));
    }

    #[test]
    fn a_batch_and_a_signal_are_made_too() {
        let work = |spec, payload: &str| WorkTemplate::compile(spec).unwrap().work_of(&event(payload));
        let spec = BatchSpec {
            dag: "settlement".to_owned(),
            key: Some("${ event.aggregate_id }".to_owned()),
            input: Some(json!({"order": "${ event.payload }"})),
        };
        let Work::Batch(batch) = work(WorkSpec::Batch(spec), "7").unwrap().work else { panic!("a batch") };
        assert_eq!((batch.dag.as_str(), batch.key.as_deref()), ("settlement", Some("17")));
        assert_eq!(batch.input.get(), r#"{"order":7}"#);
        let spec = SignalSpec {
            batch: "${ event.payload.batch }".to_owned(),
            name: "approved".to_owned(),
            payload: Some(json!({"choice": "yes"})),
        };
        let id = BatchId::new();
        let made = work(WorkSpec::Signal(spec.clone()), &format!(r#"{{"batch": "{id}"}}"#)).unwrap();
        let Work::Signal(signal) = made.work else { panic!("a signal") };
        assert_eq!((signal.batch, signal.id), (id, made.event.to_string()));
        let fault = work(WorkSpec::Signal(spec), r#"{"batch": "x"}"#).unwrap_err().to_string();
        assert!(fault.ends_with("/batch: \"x\" is not the id of a batch"), "{fault}");
    }
}
