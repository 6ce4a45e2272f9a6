//! Promises 17, 18 and 20: the log of events, consumers, and events of state changes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::export::NO_CHANGE;
use crate::record::{Effect, Outcome, Record, Row, What};

/// An event of the log.
pub(super) struct Logged<'r> {
    pub(super) id: &'r str,
    pub(super) aggregate: &'r str,
    pub(super) sequence: u64,
    payload: &'r str,
    pub(super) change: Option<i64>,
}

/// Returns the events of the log.
pub(super) fn logged(record: &Record) -> impl Iterator<Item = Logged<'_>> {
    record.rows.iter().filter_map(|row| match row {
        Row::Event { id, aggregate, sequence, payload, change } => {
            Some(Logged { id, aggregate, sequence: *sequence, payload, change: *change })
        }
        _ => None,
    })
}

/// An event is in the log exactly when its transaction committed, unchanged. Those of an aggregate are numbered without gaps, in the order of
/// their commits.
pub(super) fn log(record: &Record, findings: &mut Findings) {
    let log: HashMap<&str, Logged<'_>> = logged(record).map(|event| (event.id, event)).collect();
    let losses = Losses::of(record);
    // An event that was repeated can have been committed by any of its calls.
    let mut began: HashMap<&str, i64> = HashMap::new();
    for operation in &record.operations {
        if let What::Emit { event, .. } = &operation.what {
            let first = began.entry(event).or_insert(operation.began_ms);
            *first = operation.began_ms.min(*first);
        }
    }
    let mut acknowledged = HashSet::new();
    let mut commits: BTreeMap<&str, Vec<(i64, i64, u64)>> = BTreeMap::new();
    for operation in &record.operations {
        let What::Emit { event, aggregate, payload } = &operation.what else { continue };
        if operation.outcome != Outcome::Ok {
            continue;
        }
        acknowledged.insert(&**event);
        let found = log.get(&**event);
        let is_lost = found.is_none() && losses.explains(Subject::Event(event), operation).is_some();
        findings.check(
            is_lost || found.is_some_and(|found| found.payload == payload && found.aggregate == aggregate),
            || {
                let how = if found.is_some() { "changed" } else { "missing" };
                format!("event {event}, acknowledged to {}, is {how}", operation.client)
            },
        );
        if let (Some(found), Some(ended)) = (found, operation.ended_ms) {
            commits.entry(aggregate).or_default().push((began[&**event], ended, found.sequence));
        }
    }
    for operation in &record.operations {
        let What::Emit { event, .. } = &operation.what else { continue };
        if operation.outcome == Outcome::Failed && !acknowledged.contains(&**event) {
            findings
                .check(!log.contains_key(&**event), || format!("event {event}, rolled back, is in the log"));
        }
    }
    for (aggregate, mut commits) in commits {
        commits.sort_unstable_by_key(|&(_, ended, _)| ended);
        for (index, &(began, _, sequence)) in commits.iter().enumerate() {
            let before = commits[..index].iter().filter(|(_, ended, _)| *ended < began);
            let highest = before.map(|&(_, _, sequence)| sequence).max().unwrap_or_default();
            findings.check(highest < sequence, || {
                format!("event {sequence} of {aggregate} was emitted after event {highest}")
            });
        }
    }
    without_gaps(record, findings);
}

fn without_gaps(record: &Record, findings: &mut Findings) {
    let mut aggregates: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for event in logged(record) {
        aggregates.entry(event.aggregate).or_default().push(event.sequence);
    }
    for (aggregate, mut sequences) in aggregates {
        sequences.sort_unstable();
        findings.check((1..).zip(&sequences).all(|(expected, sequence)| expected == *sequence), || {
            format!("the events of {aggregate} are numbered {sequences:?}")
        });
    }
}

/// Every consumer has the effect of every event once, unless it was abandoned; one that takes events in order has them in order. It can have
/// taken in an event that was lost afterwards.
pub(super) fn consumed_once(record: &Record, findings: &mut Findings) {
    let log: HashMap<&str, Logged<'_>> = logged(record).map(|event| (event.id, event)).collect();
    let losses = Losses::of(record);
    let is_lost = |event: &str| match event.rsplit_once(' ') {
        Some((aggregate, sequence)) => {
            sequence.parse().is_ok_and(|sequence| losses.is_lost_event(aggregate, sequence))
        }
        None => losses.is_lost(Subject::Event(event)),
    };
    let mut times: HashMap<(&str, &str), u32> = HashMap::new();
    let mut last: HashMap<(&str, &str), u64> = HashMap::new();
    for effect in &record.effects {
        let Effect::Consumed { consumer, event, in_order } = effect else { continue };
        *times.entry((consumer, event)).or_default() += 1;
        let Some(logged) = log.get(&**event) else {
            findings.check(is_lost(event), || {
                format!("{consumer} took in event {event}, which is not in the log")
            });
            continue;
        };
        let before = last.insert((consumer, logged.aggregate), logged.sequence).unwrap_or_default();
        findings.check(!in_order || before < logged.sequence, || {
            format!(
                "{consumer} took in event {} of {} after event {before}",
                logged.sequence, logged.aggregate
            )
        });
    }
    let abandoned = abandoned(record);
    for row in &record.rows {
        let Row::Consumer { name } = row else { continue };
        for event in log.values().filter(|event| event.change.is_none()) {
            let times = times.get(&(&**name, event.id)).copied().unwrap_or_default();
            let expected = u32::from(!abandoned.contains(&(&**name, event.id)));
            findings.check(times == expected, || {
                format!("{name} took in event {} {times} times instead of {expected}", event.id)
            });
        }
    }
}

/// Returns the abandoned events, with the subscription or consumer.
pub(super) fn abandoned(record: &Record) -> HashSet<(&str, &str)> {
    let abandoned = record.rows.iter().filter_map(|row| match row {
        Row::Abandoned { by, event } => Some((&**by, &**event)),
        _ => None,
    });
    abandoned.collect()
}

/// Every change of a job of a recorded kind is exactly one event, and the events of a job are in the order of its changes.
pub(super) fn changes(record: &Record, findings: &mut Findings) {
    let kinds: HashSet<&str> = record
        .rows
        .iter()
        .filter_map(|row| if let Row::Recorded { kind } = row { Some(&**kind) } else { None })
        .collect();
    let recorded: HashSet<&str> =
        record.jobs().filter(|job| kinds.contains(&*job.kind)).map(|job| &*job.id).collect();
    let mut events: HashMap<i64, Vec<u64>> = HashMap::new();
    for event in logged(record) {
        if let Some(change) = event.change {
            events.entry(change).or_default().push(event.sequence);
        }
    }
    let mut last: HashMap<&str, u64> = HashMap::new();
    let mut changes: Vec<_> = record.changes().collect();
    changes.sort_by_key(|change| change.pos);
    for change in changes {
        let sequences = events.remove(&change.pos).unwrap_or_default();
        let expected = usize::from(recorded.contains(&*change.job));
        findings.check(sequences.len() == expected, || {
            let count = sequences.len();
            format!("{} of job {} (position {}) is {count} events", change.verb, change.job, change.pos)
        });
        for sequence in sequences {
            let before = last.insert(&change.job, sequence).unwrap_or_default();
            findings.check(before < sequence, || {
                format!("the events of job {} are not in the order of its changes", change.job)
            });
        }
    }
    // The changes of a job that was deleted are gone.
    let gone = record.has_retention().then_some(NO_CHANGE);
    for change in events.into_keys().filter(|change| Some(*change) != gone) {
        findings.check(false, || {
            format!("an event describes the change at position {change}, which does not exist")
        });
    }
}
