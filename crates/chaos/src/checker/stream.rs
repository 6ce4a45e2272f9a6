//! Promise 22: the stream of changes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::verdict::Findings;
use crate::record::{Effect, Loss, LostRow, Record};

/// Every watcher receives each change at most once, those of a job in their order, and all from its first one to its last one, unless it was
/// reset; and it is reset after commits were lost, before it receives a new change.
pub(super) fn every_change_once(record: &Record, findings: &mut Findings) {
    let job_of: HashMap<i64, &str> = record.changes().map(|change| (change.pos, &*change.job)).collect();
    let losses: BTreeMap<u32, Lost> = record.losses().map(|loss| (loss.number, Lost::of(loss))).collect();
    let mut watchers: HashMap<&str, Watched> = HashMap::new();
    for effect in &record.effects {
        match effect {
            Effect::Reset { watcher } => {
                if let Some(watched) = watchers.remove(&**watcher) {
                    watched.check(watcher, &job_of, &losses, findings);
                }
            }
            Effect::Watched { watcher, pos } => watchers.entry(watcher).or_default().positions.push(*pos),
            Effect::CommitsLost { loss } => {
                for watched in watchers.values_mut() {
                    watched.losses.push((*loss, watched.positions.len()));
                }
            }
            _ => {}
        }
    }
    for (watcher, watched) in watchers {
        watched.check(watcher, &job_of, &losses, findings);
    }
}

/// The positions that a loss has removed, which can be assigned again.
struct Lost {
    positions: HashSet<i64>,
    /// The highest position that is kept.
    last_pos: i64,
}

impl Lost {
    fn of(loss: &Loss) -> Self {
        let positions = loss.rows.iter().filter_map(|row| match row {
            LostRow::Change { pos, .. } => Some(*pos),
            _ => None,
        });
        Self { positions: positions.collect(), last_pos: loss.last_pos }
    }
}

/// What a watcher received since its begin or its last reset.
#[derive(Default)]
struct Watched {
    positions: Vec<i64>,
    /// The losses that happened meanwhile, each with the number of positions before it.
    losses: Vec<(u32, usize)>,
}

impl Watched {
    fn check(
        &self,
        watcher: &str,
        job_of: &HashMap<i64, &str>,
        losses: &BTreeMap<u32, Lost>,
        findings: &mut Findings,
    ) {
        let mut seen = HashSet::new();
        for pos in &self.positions {
            findings.check(seen.insert(*pos), || {
                format!("{watcher} received the change at position {pos} twice")
            });
        }
        // A page of the lost server can arrive a moment later, so lost positions are those of its changes.
        let lost = self.losses.iter().filter_map(|(number, before)| Some((losses.get(number)?, *before)));
        for (loss, before) in lost.clone() {
            let new = |pos: &&i64| **pos > loss.last_pos && !loss.positions.contains(pos);
            let late = self.positions[before..].iter().find(new);
            findings.check(late.is_none(), || {
                let pos = late.copied().unwrap_or_default();
                format!("{watcher} received the new change at {pos} after commits were lost, without a reset")
            });
        }
        let is_lost = |pos: &i64| lost.clone().any(|(loss, _)| loss.positions.contains(pos));
        let kept: Vec<i64> = self.positions.iter().copied().filter(|pos| !is_lost(pos)).collect();
        in_order_without_gaps(&kept, watcher, job_of, findings);
    }
}

/// The changes of each job are in their order, and those between two that were received were received, too.
fn in_order_without_gaps(
    positions: &[i64],
    watcher: &str,
    job_of: &HashMap<i64, &str>,
    findings: &mut Findings,
) {
    let seen: HashSet<i64> = positions.iter().copied().collect();
    // The first and the last position of each job.
    let mut range: HashMap<&str, (i64, i64)> = HashMap::new();
    for pos in positions {
        let Some(job) = job_of.get(pos).copied() else { continue };
        let (first, before) = range.get(job).copied().unwrap_or((*pos, 0));
        findings.check(before < *pos, || {
            format!("{watcher} received the change of job {job} at {pos} after that at {before}")
        });
        range.insert(job, (first.min(*pos), *pos));
    }
    for (pos, job) in job_of {
        let Some((first, last)) = range.get(job) else { continue };
        if first < pos && pos < last {
            findings.check(seen.contains(pos), || {
                format!("{watcher} never received the change of job {job} at {pos}")
            });
        }
    }
}
