//! Promise 7: limits of groups, and rates.

use std::collections::{BTreeMap, HashMap};

use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::record::{Effect, Record, Row};

/// The tolerance for times that are rounded to milliseconds.
const ROUNDING_MS: f64 = 2.0;

/// No more handlers of a group run at a time than it has slots, and no kind starts more often than its rate allows.
pub(super) fn limited(record: &Record, findings: &mut Findings) {
    groups(record, findings);
    rates(record, findings);
}

fn groups(record: &Record, findings: &mut Findings) {
    let slots: HashMap<&str, usize> = record
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::GroupLimit { group, slots } => Some((&**group, *slots)),
            _ => None,
        })
        .collect();
    let group_of: HashMap<&str, &str> =
        record.jobs().filter_map(|job| Some((&*job.id, job.group.as_deref()?))).collect();
    // A handler that never finished was killed, or lost its lease: its run lasted until the store took it away.
    let mut taken_away: HashMap<(&str, u64), i64> = HashMap::new();
    for change in record.changes().filter(|change| change.from.as_deref() == Some("running")) {
        taken_away.insert((&change.job, change.token), change.at_ms);
    }
    // The store has forgotten the slots of these runs.
    let losses = Losses::of(record);
    let mut began: HashMap<(&str, u64), i64> = HashMap::new();
    // Beginnings and ends of runs of each group: the time, and +1 or -1. Ends come first at equal times.
    let mut steps: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    let mut add = |job: &str, from: i64, to: i64| {
        if let Some(&group) = group_of.get(job) {
            steps.entry(group).or_default().extend([(from, 1), (to.max(from), -1)]);
        }
    };
    for effect in &record.effects {
        match effect {
            Effect::Began { job, token, at_ms } if !losses.is_lost(Subject::Claim(job, *token)) => {
                began.insert((job, *token), *at_ms);
            }
            Effect::Finished { job, token, at_ms } => {
                if let Some(from) = began.remove(&(&**job, *token)) {
                    let until = taken_away.get(&(&**job, *token)).copied().unwrap_or(*at_ms);
                    add(job, from, until.min(*at_ms));
                }
            }
            _ => {}
        }
    }
    for ((job, token), from) in began {
        add(job, from, taken_away.get(&(job, token)).copied().unwrap_or(from));
    }
    for (group, mut steps) in steps {
        steps.sort_unstable();
        let allowed = slots.get(group).copied().unwrap_or(1);
        let mut running = 0_i64;
        for (at, step) in steps {
            running += step;
            if step > 0 {
                findings.check(usize::try_from(running).is_ok_and(|running| running <= allowed), || {
                    format!("{running} jobs of group {group} ran at {at}, which has {allowed} slots")
                });
            }
        }
    }
}

fn rates(record: &Record, findings: &mut Findings) {
    let kind_of: HashMap<&str, &str> = record.jobs().map(|job| (&*job.id, &*job.kind)).collect();
    for row in &record.rows {
        let Row::Rate { kind, per_s, burst } = row else { continue };
        let mut starts: Vec<i64> = record
            .changes()
            .filter(|change| change.verb == "claim" && kind_of.get(&*change.job) == Some(&&**kind))
            .map(|change| change.at_ms)
            .collect();
        starts.sort_unstable();
        // The most tokens that a bucket can have had at each start, if it was full before the first one.
        let (mut tokens, mut last) = (f64::from(*burst), starts.first().copied().unwrap_or_default());
        for at in starts {
            let passed_ms = i32::try_from(at - last).map_or(f64::MAX, f64::from);
            tokens = f64::from(*burst).min(tokens + passed_ms / 1_000.0 * per_s) - 1.0;
            last = at;
            findings.check(tokens >= -1e-6 - ROUNDING_MS / 1_000.0 * per_s, || {
                format!("kind {kind} started more often at {at} than {per_s} per second and {burst} at once")
            });
        }
    }
}
