//! `[retention]`: how long finished jobs and other old rows are kept.

use milepost_cli_support::parsers;
use milepost_core::retention::{Keep, RetentionPolicy};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;

/// How long ended jobs and other old data are kept: durations such as `7d`, or `forever`. Workers delete in small batches; see
/// docs/RETENTION.md.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retention {
    /// Jobs that succeeded, from their end. The default is `7d`.
    succeeded: Option<Kept>,
    /// Jobs that were canceled or skipped, from their end. The default is `7d`.
    canceled: Option<Kept>,
    /// Dead letters, from their failure. The default is `90d`.
    failed: Option<Kept>,
    /// The history of ended jobs, at most as long as the jobs. The default is `forever`: as long as the jobs.
    history: Option<Kept>,
    /// Keys, from the end of their job, at least as long as the job. The default is `0s`: exactly as long as the job.
    keys: Option<Kept>,
    /// Workers that ended, from their end. The default is `7d`.
    workers: Option<Kept>,
    /// Batches, from their end; their jobs stay at least as long. The default is `7d`.
    batches: Option<Kept>,
    /// Ids of events that consumers have processed, from their processing. The default is `14d`.
    inbox: Option<Kept>,
    /// Events in the log that all subscriptions have processed, from their emission. The default is `7d`.
    events: Option<Kept>,
    /// Entries of the audit; at least `30d`. The default is `400d`.
    audit: Option<Kept>,
}

/// How long something is kept.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("format" = "milepost-keep"))]
struct Kept(Keep);

impl TryFrom<String> for Kept {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parsers::keep(&text).map(Self)
    }
}

impl Retention {
    /// Returns the retention policy of the section.
    pub(crate) fn policy(&self) -> RetentionPolicy {
        let default = RetentionPolicy::default();
        let keep = |kept: Option<Kept>, default| kept.map_or(default, |kept| kept.0);
        RetentionPolicy {
            succeeded: keep(self.succeeded, default.succeeded),
            canceled: keep(self.canceled, default.canceled),
            failed: keep(self.failed, default.failed),
            history: keep(self.history, default.history),
            keys: keep(self.keys, default.keys),
            workers: keep(self.workers, default.workers),
            batches: keep(self.batches, default.batches),
            inbox: keep(self.inbox, default.inbox),
            events: keep(self.events, default.events),
            audit: keep(self.audit, default.audit),
        }
    }
}

pub(super) fn check(retention: Option<&Node>, faults: &mut Faults) {
    let Some(node) = retention else { return };
    let kept =
        |key: &str| node.get(key).and_then(Node::text).and_then(|text| parsers::keep(text).ok()).map(Kept);
    let section = Retention {
        succeeded: kept("succeeded"),
        canceled: kept("canceled"),
        failed: kept("failed"),
        history: kept("history"),
        keys: kept("keys"),
        workers: kept("workers"),
        batches: kept("batches"),
        inbox: kept("inbox"),
        events: kept("events"),
        audit: kept("audit"),
    };
    if let Err(error) = section.policy().check() {
        faults.add(
            node.span.start,
            error.to_string(),
            "periods are durations such as \"7d\", or \"forever\"",
        );
    }
}
