//! Promises 13 and 14: targets and aborts of bulk jobs.

use std::collections::{HashMap, HashSet};

use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::record::{Effect, Outcome, Record, Row, What};

/// Every target of a run is applied exactly once (at least once if its effects are elsewhere) or recorded as a failure, and nothing else is.
pub(super) fn every_target_once(record: &Record, findings: &mut Findings) {
    let mut applied: HashMap<&str, HashMap<&str, u32>> = HashMap::new();
    for effect in &record.effects {
        if let Effect::Target { run, key } = effect {
            *applied.entry(run).or_default().entry(key).or_default() += 1;
        }
    }
    let failed: HashSet<(&str, &str)> = record
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::FailedTarget { run, key } => Some((&**run, &**key)),
            _ => None,
        })
        .collect();
    let nothing = HashMap::new();
    let losses = Losses::of(record);
    for operation in record.operations.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        let What::StartBulk { run, targets, optional, in_store } = &operation.what else { continue };
        if losses.explains(Subject::Job(run), operation).is_some() && !applied.contains_key(&**run) {
            continue;
        }
        let times = applied.get(&**run).unwrap_or(&nothing);
        for key in targets {
            let is_failed = failed.contains(&(&**run, &**key));
            let times = times.get(&**key).copied().unwrap_or_default();
            let holds = match (is_failed, in_store) {
                (true, true) => times == 0,
                (true, false) => true,
                (false, true) => times == 1,
                (false, false) => times >= 1,
            };
            findings.check(holds, || {
                let failed = if is_failed { " and recorded as a failure" } else { "" };
                format!("target {key} of run {run} was applied {times} times{failed}")
            });
        }
        let known: HashSet<&str> = targets.iter().chain(optional).map(|key| &**key).collect();
        for (key, times) in times.iter().filter(|(key, _)| !known.contains(**key)) {
            findings.check(false, || format!("run {run} applied {key} {times} times, which is no target"));
        }
        for key in optional {
            let times = times.get(&**key).copied().unwrap_or_default();
            findings.check(times <= 1 || !in_store, || {
                format!("target {key} of run {run} was applied {times} times")
            });
        }
    }
}

/// Between an acknowledged abort and the next resume, no chunk begins, unless the abort can be lost.
pub(super) fn no_chunk_after_abort(record: &Record, findings: &mut Findings) {
    let losses = Losses::of(record);
    let kept = record.operations.iter().filter(|operation| !losses.can_undo(operation));
    for abort in kept.filter(|operation| operation.outcome == Outcome::Ok) {
        let (What::AbortBulk { run }, Some(aborted_ms)) = (&abort.what, abort.ended_ms) else { continue };
        let resumed_ms = record.operations.iter().filter_map(|operation| match &operation.what {
            What::ResumeBulk { run: other } if other == run && operation.began_ms >= abort.began_ms => {
                Some(operation.began_ms)
            }
            _ => None,
        });
        let until_ms = resumed_ms.min().unwrap_or(i64::MAX);
        let late = record.effects.iter().find_map(|effect| match effect {
            Effect::Chunk { run: other, at_ms }
                if other == run && (aborted_ms + 1..until_ms).contains(at_ms) =>
            {
                Some(at_ms - aborted_ms)
            }
            _ => None,
        });
        findings.check(late.is_none(), || {
            format!(
                "run {run} began a chunk {} ms after its abort was acknowledged",
                late.unwrap_or_default()
            )
        });
    }
}
