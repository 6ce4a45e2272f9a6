//! Promise 22: the stream of changes.

use std::collections::{HashMap, HashSet};

use super::verdict::Findings;
use crate::record::{Effect, Record};

/// Every watcher receives each change at most once, those of a job in their order, and all from its first one to its last one, unless it was
/// reset.
pub(super) fn every_change_once(record: &Record, findings: &mut Findings) {
    let job_of: HashMap<i64, &str> = record.changes().map(|change| (change.pos, &*change.job)).collect();
    let mut watchers: HashMap<&str, Watched<'_>> = HashMap::new();
    for effect in &record.effects {
        match effect {
            Effect::Reset { watcher } => {
                if let Some(watched) = watchers.remove(&**watcher) {
                    watched.check(watcher, &job_of, findings);
                }
            }
            Effect::Watched { watcher, pos } => {
                let watched = watchers.entry(watcher).or_default();
                findings.check(watched.seen.insert(*pos), || {
                    format!("{watcher} received the change at position {pos} twice")
                });
                let job = job_of.get(pos).copied().unwrap_or_default();
                let before = watched.last.insert(job, *pos).unwrap_or_default();
                findings.check(job.is_empty() || before < *pos, || {
                    format!("{watcher} received the change of job {job} at {pos} after that at {before}")
                });
            }
            _ => {}
        }
    }
    for (watcher, watched) in watchers {
        watched.check(watcher, &job_of, findings);
    }
}

/// What a watcher received since its begin or its last reset.
#[derive(Default)]
struct Watched<'r> {
    seen: HashSet<i64>,
    /// The last position of each job.
    last: HashMap<&'r str, i64>,
}

impl Watched<'_> {
    /// Changes of a job between two that were received must have been received, too.
    fn check(&self, watcher: &str, job_of: &HashMap<i64, &str>, findings: &mut Findings) {
        let mut first: HashMap<&str, i64> = HashMap::new();
        for pos in &self.seen {
            if let Some(job) = job_of.get(pos) {
                let least = first.entry(job).or_insert(*pos);
                *least = (*least).min(*pos);
            }
        }
        for (pos, job) in job_of {
            let (Some(first), Some(last)) = (first.get(job), self.last.get(job)) else { continue };
            if first < pos && pos < last {
                findings.check(self.seen.contains(pos), || {
                    format!("{watcher} never received the change of job {job} at {pos}")
                });
            }
        }
    }
}
