//! Rollups: the numbers and durations of attempts by minute, queue and kind, which charts show after the jobs themselves are deleted.
//!
//! Maintenance counts the history since the last rollup, and adds the numbers to the store together with the position in the history, in one
//! transaction. So each change is counted once, whichever process counts it and whenever one dies. Numbers of changes are exact. Their
//! distribution over queues, kinds and durations is estimated from a random sample if there are more than [`SAMPLE_MAX`] changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::transition::Verb;

mod series;

pub use series::{Count, Range, RollupFilter, Rollups, Series};

/// The interval between two rollups.
pub const EVERY: Duration = Duration::from_secs(10);
/// The interval between two rollups while nothing changes, so that an idle store writes little.
const IDLE_EVERY: Duration = Duration::from_secs(60);
/// The approximate maximum number of changes of a rollup whose queue, kind and duration are read.
pub const SAMPLE_MAX: u32 = 4_000;
/// The longest history from which the first rollup of a store counts. Otherwise it begins with new changes.
pub const FIRST_CHANGES_MAX: i64 = 100_000;
/// If the last rollup is older, the next one begins with new changes, because the count of all changes since could take too long.
pub const GAP_MAX: Duration = Duration::from_secs(3600);
/// The maximum number of pairs of queue and kind of a rollup. Those with the fewest changes are counted together, with empty names.
const PAIRS_MAX: usize = 100;
/// The bucket of changes whose duration is not known.
const NO_BUCKET: i16 = -1;
/// The highest bucket, of durations of 12 days and more.
const BUCKET_MAX: i16 = 30;

/// The length of the periods in which a store keeps rollups, and how long. Minutes that are older become a part of a longer period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The length of a period, in seconds.
    pub seconds: i64,
    /// How long they are kept, in seconds.
    pub kept_s: i64,
}

/// The steps, shortest first.
pub const STEPS: [Step; 3] = [
    Step { seconds: 60, kept_s: 3 * 3600 },
    Step { seconds: 600, kept_s: 2 * 24 * 3600 },
    Step { seconds: 3600, kept_s: 35 * 24 * 3600 },
];

/// Where the next rollup of a store begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The last rollup is recent: nothing to do.
    Later,
    /// After the last rollup.
    AfterLast,
    /// With the first change of the store.
    First,
    /// With new changes.
    Now,
}

/// Decides where the next rollup begins. `every`: the interval between two. `age_ms`: the time since the last one, which is negative if the
/// clock was set back; none if there was none. `changes`: the number of changes in the history.
#[must_use]
pub fn begin(every: Duration, age_ms: Option<i64>, changes: i64) -> Begin {
    let is_within = |age_ms, most: Duration| Duration::from_millis(age_ms) < most;
    match age_ms.map(u64::try_from) {
        None if changes <= FIRST_CHANGES_MAX => Begin::First,
        None => Begin::Now,
        Some(Ok(age_ms)) if is_within(age_ms, every) => Begin::Later,
        Some(Ok(age_ms)) if !is_within(age_ms, GAP_MAX) => Begin::Now,
        Some(_) => Begin::AfterLast,
    }
}

/// Returns whether a rollup of these tallies is stored, or left to the next one. `age_ms`: as for [`begin`].
#[must_use]
pub fn is_stored(age_ms: Option<i64>, tallies: &[Tally]) -> bool {
    let is_recent = |age_ms| Duration::from_millis(age_ms) < IDLE_EVERY;
    !tallies.is_empty() || !age_ms.and_then(|age_ms| u64::try_from(age_ms).ok()).is_some_and(is_recent)
}

/// Changes of one verb in one minute.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The start of the minute, in seconds since 1970.
    pub at_s: i64,
    /// [`Verb::Claim`], [`Verb::Succeed`], [`Verb::Retry`] or [`Verb::Fail`].
    pub verb: Verb,
    /// The number of changes.
    pub times: u64,
    /// A random sample of them; all of them if there are few.
    pub sample: Vec<Sampled>,
}

/// A change in a sample.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The job's queue; none if the job was deleted.
    pub queue: Option<String>,
    /// The job's kind; none if the job was deleted.
    pub kind: Option<String>,
    /// The time that the job had spent in the state before, in ms: for a claim the time it waited, for other verbs the run time. None if
    /// it is not known.
    pub took_ms: Option<u64>,
}

/// The number of changes of one queue, kind, verb and duration in one period.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollup {
    /// The start of the period, in seconds since 1970.
    pub at_s: i64,
    /// The queue; empty if not known.
    pub queue: String,
    /// The kind; empty if not known.
    pub kind: String,
    /// The verb.
    pub verb: Verb,
    /// The bucket of the duration.
    pub bucket: i16,
    /// The number of changes.
    pub times: u64,
}

/// Returns the bucket of a duration: n from 2ⁿ ms, up to twice that; 0 also for less than a millisecond.
#[must_use]
pub fn bucket(took_ms: u64) -> i16 {
    i16::try_from(took_ms.max(1).ilog2()).unwrap_or(BUCKET_MAX).min(BUCKET_MAX)
}

/// Returns the rollups of these tallies. Their numbers add up to those of the tallies.
#[must_use]
pub fn roll_up(tallies: &[Tally]) -> Vec<Rollup> {
    let shown = frequent_pairs(tallies);
    let mut rollups: BTreeMap<(i64, &str, &str, Verb, i16), u64> = BTreeMap::new();
    for tally in tallies {
        let mut sampled: BTreeMap<(&str, &str, i16), u64> = BTreeMap::new();
        for change in &tally.sample {
            let (queue, kind) = Some(pair(change)).filter(|pair| shown.contains(pair)).unwrap_or_default();
            let bucket = change.took_ms.map_or(NO_BUCKET, bucket);
            *sampled.entry((queue, kind, bucket)).or_default() += 1;
        }
        if sampled.is_empty() {
            sampled.insert(("", "", NO_BUCKET), 1);
        }
        let in_sample: u64 = sampled.values().sum();
        let (mut counted, mut given) = (0, 0);
        for ((queue, kind, bucket), times) in sampled {
            // The shares of what was counted so far, rounded, so that the last one completes the number.
            counted += times;
            let upto = share(tally.times, counted, in_sample);
            let times = upto - given;
            given = upto;
            if times > 0 {
                *rollups.entry((tally.at_s, queue, kind, tally.verb, bucket)).or_default() += times;
            }
        }
    }
    let rollup = |((at_s, queue, kind, verb, bucket), times): ((i64, &str, &str, _, _), _)| Rollup {
        at_s,
        queue: queue.to_owned(),
        kind: kind.to_owned(),
        verb,
        bucket,
        times,
    };
    rollups.into_iter().map(rollup).collect()
}

fn pair(change: &Sampled) -> (&str, &str) {
    match (&change.queue, &change.kind) {
        (Some(queue), Some(kind)) => (queue, kind),
        _ => ("", ""),
    }
}

/// Returns the pairs of queue and kind with the most changes.
fn frequent_pairs(tallies: &[Tally]) -> HashSet<(&str, &str)> {
    let mut changes: HashMap<(&str, &str), u64> = HashMap::new();
    for change in tallies.iter().flat_map(|tally| &tally.sample) {
        *changes.entry(pair(change)).or_default() += 1;
    }
    let mut pairs: Vec<_> = changes.into_iter().collect();
    pairs.sort_unstable_by(|(left, fewer), (right, more)| more.cmp(fewer).then(left.cmp(right)));
    pairs.into_iter().take(PAIRS_MAX).map(|(pair, _)| pair).collect()
}

/// Returns `times * part / whole`, rounded down.
fn share(times: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(times) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &str, took_ms: u64) -> Sampled {
        Sampled { queue: Some("default".into()), kind: Some(kind.into()), took_ms: Some(took_ms) }
    }

    fn tally(times: u64, sample: Vec<Sampled>) -> Tally {
        Tally { at_s: 60, verb: Verb::Succeed, times, sample }
    }

    fn times(rollups: &[Rollup], kind: &str) -> u64 {
        rollups.iter().filter(|rollup| rollup.kind == kind).map(|rollup| rollup.times).sum()
    }

    #[test]
    fn few_changes_are_counted_one_by_one() {
        let rollups =
            roll_up(&[tally(4, vec![change("a", 3), change("a", 2), change("a", 900), change("b", 0)])]);
        let found: Vec<_> = rollups.iter().map(|its| (its.kind.as_str(), its.bucket, its.times)).collect();
        assert_eq!(found, [("a", 1, 2), ("a", 9, 1), ("b", 0, 1)]);
    }

    #[test]
    fn a_sample_is_scaled_to_the_exact_number() {
        let sample = vec![change("a", 3), change("a", 3), change("b", 3)];
        let rollups = roll_up(&[tally(1_000_001, sample)]);
        assert_eq!((times(&rollups, "a"), times(&rollups, "b")), (666_667, 333_334));
        let none = roll_up(&[tally(7, Vec::new())]);
        assert_eq!(
            (none.len(), none[0].kind.as_str(), none[0].times),
            (1, "", 7),
            "nothing is lost without a sample"
        );
    }

    #[test]
    fn rare_kinds_beyond_the_limit_are_counted_together() {
        let kinds: Vec<Sampled> = (0..300)
            .flat_map(|kind| vec![change(&format!("k{kind:03}"), 1); 1 + usize::from(kind < 50)])
            .collect();
        let rollups = roll_up(&[tally(350, kinds)]);
        assert_eq!(rollups.len(), PAIRS_MAX + 1);
        assert_eq!((times(&rollups, "k007"), times(&rollups, "k299"), times(&rollups, "")), (2, 0, 200));
    }

    #[test]
    fn a_rollup_follows_the_last_one_unless_that_is_long_ago() {
        let ages = [Some(9_999), Some(10_000), Some(3_599_999), Some(3_600_000), Some(-1), None];
        let begins =
            [Begin::Later, Begin::AfterLast, Begin::AfterLast, Begin::Now, Begin::AfterLast, Begin::First];
        assert_eq!(ages.map(|age| begin(EVERY, age, FIRST_CHANGES_MAX)), begins);
        assert_eq!(begin(EVERY, None, FIRST_CHANGES_MAX + 1), Begin::Now, "of an upgraded store");
    }

    #[test]
    fn an_idle_store_is_written_each_minute() {
        assert!(!is_stored(Some(59_999), &[]));
        assert!([None, Some(-1), Some(60_000)].into_iter().all(|age_ms| is_stored(age_ms, &[])));
        assert!(is_stored(Some(10_000), &[tally(1, Vec::new())]));
    }

    #[test]
    fn buckets_double() {
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(bucket), [0, 0, 1, 1, 2, 9, 10, BUCKET_MAX]);
    }
}
