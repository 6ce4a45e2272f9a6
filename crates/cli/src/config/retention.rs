//! `[retention]`: how long finished jobs and other old rows are kept.

use milepost_cli_support::parsers;
use milepost_core::retention::{Keep, Retained, RetentionPeriod, RetentionPolicy};
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
        policy(|what| match what {
            Retained::Succeeded => self.succeeded,
            Retained::Canceled => self.canceled,
            Retained::Failed => self.failed,
            Retained::History => self.history,
            Retained::Keys => self.keys,
            Retained::Workers => self.workers,
            Retained::Batches => self.batches,
            Retained::Inbox => self.inbox,
            Retained::Events => self.events,
            Retained::Audit => self.audit,
        })
    }
}

/// Returns the default policy, with the periods that are given.
fn policy(given: impl Fn(Retained) -> Option<Kept>) -> RetentionPolicy {
    let period = |of: &Retained| Some(RetentionPeriod { of: *of, keep: given(*of)?.0 });
    RetentionPolicy::default().with(Retained::ALL.iter().filter_map(period))
}

pub(super) fn check(retention: Option<&Node>, faults: &mut Faults) {
    let Some(node) = retention else { return };
    let kept =
        |key: &str| node.get(key).and_then(Node::text).and_then(|text| parsers::keep(text).ok()).map(Kept);
    if let Err(error) = policy(|what| kept(what.as_str())).check() {
        faults.add(
            node.span.start,
            error.to_string(),
            "periods are durations such as \"7d\", or \"forever\"",
        );
    }
}
