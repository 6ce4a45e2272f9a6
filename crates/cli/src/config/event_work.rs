//! `enqueue`, `start` and `signal` of `[subscription.NAME]`: the work that each event starts in the store.

use std::sync::Arc;

use milepost_core::event_work::{BatchSpec, InvalidWork, JobSpec, SignalSpec, WorkSpec, WorkTemplate};
use milepost_core::job::Priority;
use milepost_core::json::plain_option;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;

const REMEDY: &str = "docs/guides/start-a-job-when-something-happens.md describes the templates";

/// A job for each event. `payload`, `key` and `group` may contain expressions over the event, written `$${ event.aggregate_id }` here.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnqueueEntry {
    /// The kind of the jobs; any worker may run them.
    kind: String,
    /// Their queue. The default is `default`.
    #[serde(default)]
    queue: Option<String>,
    /// Their payload. The default is the event.
    #[serde(default, deserialize_with = "plain_option")]
    payload: Option<Json>,
    /// Their key: at most one job of the kind ever has it. The default is none.
    #[serde(default)]
    key: Option<String>,
    /// Their group: its jobs run one at a time, or up to the number that its limit allows. The default is none.
    #[serde(default)]
    group: Option<String>,
    /// Their priority within the queue, from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    priority: Option<u8>,
    /// The maximum number of attempts of each job. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_attempts: Option<u32>,
    /// The time limit of one attempt.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

/// A batch for each event. `key` and `input` may contain expressions over the event, written `$${ event.aggregate_id }` here.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartEntry {
    /// The DAG of the batches; each batch gets its latest version.
    dag: String,
    /// Their key: at most one batch of the DAG ever has it. The default is none.
    #[serde(default)]
    key: Option<String>,
    /// Their input. The default is the event.
    #[serde(default, deserialize_with = "plain_option")]
    input: Option<Json>,
}

/// A signal for a batch for each event. `batch` and `payload` may contain expressions over the event, written `$${ event.payload.batch }` here.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalEntry {
    /// The id of the batch.
    batch: String,
    /// The name of the signal that a task of the batch waits for.
    name: String,
    /// The output of that task. The default is the event.
    #[serde(default, deserialize_with = "plain_option")]
    payload: Option<Json>,
}

impl EnqueueEntry {
    fn spec(&self) -> WorkSpec {
        WorkSpec::Job(JobSpec {
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            payload: self.payload.clone(),
            key: self.key.clone(),
            group: self.group.clone(),
            // The schema allows no other numbers.
            priority: self.priority.and_then(|priority| Priority::try_from(priority).ok()),
            max_attempts: self.max_attempts,
            timeout: self.timeout.map(|time| time.0),
        })
    }
}

impl StartEntry {
    fn spec(&self) -> WorkSpec {
        WorkSpec::Batch(BatchSpec { dag: self.dag.clone(), key: self.key.clone(), input: self.input.clone() })
    }
}

impl SignalEntry {
    fn spec(&self) -> WorkSpec {
        WorkSpec::Signal(SignalSpec {
            batch: self.batch.clone(),
            name: self.name.clone(),
            payload: self.payload.clone(),
        })
    }
}

/// Returns the compiled work of a subscription, if it starts any.
pub(super) fn template(
    enqueue: Option<&EnqueueEntry>,
    start: Option<&StartEntry>,
    signal: Option<&SignalEntry>,
) -> Option<Result<Arc<WorkTemplate>, InvalidWork>> {
    let spec = enqueue.map(EnqueueEntry::spec);
    let spec = spec.or_else(|| start.map(StartEntry::spec)).or_else(|| signal.map(SignalEntry::spec));
    spec.map(|spec| WorkTemplate::compile(spec).map(Arc::new))
}

/// Reports invalid work at its place; `what` is its key, `settings` its value.
pub(super) fn report(
    subscription: &str,
    what: &str,
    settings: &Node,
    invalid: &InvalidWork,
    faults: &mut Faults,
) {
    let at = invalid.pointer().and_then(|pointer| find(settings, pointer)).unwrap_or(settings);
    faults.add(at.span.start, format!("{what} of the subscription {subscription}: {invalid}"), REMEDY);
}

/// Returns the value at a JSON pointer.
fn find<'n>(settings: &'n Node, pointer: &str) -> Option<&'n Node> {
    pointer.split('/').skip(1).try_fold(settings, |node, step| {
        let name = step.replace("~1", "/").replace("~0", "~");
        let item = || node.nodes().get(name.parse::<usize>().ok()?);
        node.get(&name).or_else(item)
    })
}
