//! `[worker]`: settings of the worker.

use std::time::Duration;

use milepost::WorkerOptions;
use milepost_cli_support::parsers;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;
use super::kind;

/// The shortest lease that leaves enough time to renew it.
const LEASE_MIN: Duration = Duration::from_millis(500);

/// Settings of the worker.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Worker {
    /// Its display name. The default is host and process id.
    pub(crate) name: Option<String>,
    /// The queues it serves. The default is `["default"]`.
    #[schemars(length(min = 1))]
    pub(crate) queues: Option<Vec<String>>,
    /// The maximum number of jobs that run at the same time. The default is 64.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) concurrency: Option<usize>,
    /// The maximum number of bulk jobs that run at the same time, in addition to `concurrency`. The
    /// default is 2.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) bulk_concurrency: Option<usize>,
    /// The time without a heartbeat after which the worker is declared dead and its jobs are taken back; at least `500ms`. The default
    /// is `30s`.
    pub(crate) lease: Option<Humane>,
    /// The polling interval when nothing wakes the worker. The default is `1s`.
    #[schemars(extend("format" = "milepost-duration-positive"))]
    pub(crate) poll_interval: Option<Humane>,
    /// How long jobs may continue after a shutdown request before they are asked to stop. The default is `20s`.
    pub(crate) drain: Option<Humane>,
}

/// The default maximum number of bulk jobs that run at the same time.
const BULK_CONCURRENCY_DEFAULT: usize = 2;

impl Worker {
    /// Returns the maximum number of bulk jobs that run at the same time.
    pub(crate) fn bulk_concurrency(&self) -> usize {
        self.bulk_concurrency.unwrap_or(BULK_CONCURRENCY_DEFAULT)
    }

    /// Applies the settings of the file to the options.
    pub(crate) fn apply(self, options: &mut WorkerOptions) {
        set(&mut options.name, self.name);
        set(&mut options.queues, self.queues);
        set(&mut options.concurrency, self.concurrency);
        set(&mut options.lease, self.lease.map(|time| time.0));
        set(&mut options.poll_interval, self.poll_interval.map(|time| time.0));
        set(&mut options.drain, self.drain.map(|time| time.0));
    }
}

fn set<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
    }
}

pub(super) fn check(worker: Option<&Node>, faults: &mut Faults) {
    let Some(worker) = worker else { return };
    for queue in worker.get("queues").map(Node::nodes).unwrap_or_default() {
        if let Some(Err(why)) = queue.text().map(|name| kind::check_name("queue", name)) {
            faults.add(queue.span.start, why, "give it a name of 1 to 200 bytes without control characters");
        }
    }
    check_lease(worker.get("lease"), "30s", faults);
}

/// Rejects a lease of a worker or a relay that is too short to be renewed. `usual` is a good value for the message.
pub(super) fn check_lease(lease: Option<&Node>, usual: &str, faults: &mut Faults) {
    if let Some((lease, Ok(time))) = lease.and_then(|lease| Some((lease, parsers::duration(lease.text()?))))
        && time < LEASE_MIN
    {
        let what = format!("a lease of {time:?} cannot be renewed in time");
        faults.add(lease.span.start, what, format!("give it at least 500ms; {usual} is a good lease"));
    }
}
