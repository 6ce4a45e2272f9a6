//! Promise 19: deliveries to sinks, and work that events start.

use std::collections::{HashMap, HashSet};

use super::events::{Logged, abandoned, logged};
use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::record::{Effect, Record, Row};

/// Every event reaches the sink of every subscription that selects it, or was abandoned; the first deliveries of an aggregate are in the order of
/// its events; nothing else is delivered, except events that were lost afterwards.
pub(super) fn delivered(record: &Record, findings: &mut Findings) {
    let log: HashMap<&str, Logged<'_>> = logged(record).map(|event| (event.id, event)).collect();
    let losses = Losses::of(record);
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut last: HashMap<(&str, &str), u64> = HashMap::new();
    for effect in &record.effects {
        let Effect::Delivered { subscription, event } = effect else { continue };
        let Some(logged) = log.get(&**event) else {
            findings.check(losses.is_lost(Subject::Event(event)), || {
                format!("{subscription} delivered {event}, which is not in the log")
            });
            continue;
        };
        // Later deliveries are repetitions.
        if !seen.insert((subscription, event)) {
            continue;
        }
        let before = last.insert((subscription, logged.aggregate), logged.sequence).unwrap_or_default();
        findings.check(before < logged.sequence, || {
            format!(
                "{subscription} delivered event {} of {} after event {before}",
                logged.sequence, logged.aggregate
            )
        });
    }
    started(record, &log, findings);
    let abandoned = abandoned(record);
    for row in &record.rows {
        let Row::Subscription { name, changes } = row else { continue };
        for event in log.values().filter(|event| event.change.is_some() == *changes) {
            let key = (&**name, event.id);
            findings.check(seen.contains(&key) || abandoned.contains(&key), || {
                format!("{name} never delivered event {}", event.id)
            });
        }
    }
}

/// Every event starts one job for each subscription that starts jobs, unless it was abandoned; nothing else starts one, except an event that was
/// lost afterwards. With retention, the jobs of events may be missing, and the events of jobs.
fn started(record: &Record, log: &HashMap<&str, Logged<'_>>, findings: &mut Findings) {
    let (losses, abandoned, may_be_deleted) = (Losses::of(record), abandoned(record), record.has_retention());
    let mut times: HashMap<(&str, &str), u32> = HashMap::new();
    for row in &record.rows {
        let Row::Started { by, event } = row else { continue };
        *times.entry((by, event)).or_default() += 1;
    }
    for (&(by, event), times) in &times {
        findings.check(*times == 1, || format!("event {event} has started {times} jobs of {by}"));
        let is_known = log.contains_key(event) || may_be_deleted || losses.is_lost(Subject::Event(event));
        findings.check(is_known, || format!("{by} has a job of event {event}, which is not in the log"));
    }
    for row in &record.rows {
        let Row::Starter { name } = row else { continue };
        for event in log.values().filter(|event| event.change.is_none()) {
            let key = (&**name, event.id);
            let has_started = times.contains_key(&key) || abandoned.contains(&key) || may_be_deleted;
            findings.check(has_started, || format!("event {} has started no job of {name}", event.id));
        }
    }
}
