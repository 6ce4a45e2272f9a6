//! Charts: the rollups of a range in columns.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::STEPS;
use crate::named::named_enum;
use crate::token::TokenScope;
use crate::transition::Verb;

named_enum! {
    /// The period of a chart.
    #[derive(Default)]
    Range {
        /// The last hour, by minutes.
        #[default]
        Hour = "hour",
        /// The last day, by ten minutes.
        Day = "day",
        /// The last week, by hours.
        Week = "week",
    }
}

impl Range {
    /// Returns the length of a period, in seconds.
    #[must_use]
    pub const fn step_s(self) -> i64 {
        match self {
            Self::Hour => STEPS[0].seconds,
            Self::Day => STEPS[1].seconds,
            Self::Week => STEPS[2].seconds,
        }
    }

    /// Returns the number of periods.
    #[must_use]
    pub const fn steps(self) -> i64 {
        match self {
            Self::Hour => 60,
            Self::Day => 24 * 6,
            Self::Week => 7 * 24,
        }
    }

    /// Returns the start of the first period, in seconds since 1970. The last period is the current one.
    #[must_use]
    pub const fn from_s(self, now_s: i64) -> i64 {
        (now_s.div_euclid(self.step_s()) - self.steps() + 1) * self.step_s()
    }
}

/// Which rollups to read.
#[derive(Clone, Debug, Default)]
pub struct RollupFilter {
    /// The period.
    pub range: Range,
    /// Only of this queue.
    pub queue: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of these queues and kinds; without patterns: of all.
    pub scope: TokenScope,
}

/// The number of changes of one verb and duration in one period of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The start of the period, in seconds since 1970.
    pub at_s: i64,
    /// The verb.
    pub verb: Verb,
    /// The bucket of the duration.
    pub bucket: i16,
    /// The number of changes.
    pub times: u64,
}

/// The rollups of a range.
#[derive(Clone, Debug, Default)]
pub struct Rollups {
    /// The time, in seconds since 1970.
    pub now_s: i64,
    /// The counts, in no order.
    pub counts: Vec<Count>,
    /// The time of the last rollup, in seconds since 1970. None before the first.
    pub upto_s: Option<i64>,
}

/// Numbers of attempts over time in columns: one value for each period, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Series {
    /// The length of a period, in seconds.
    pub step_s: i64,
    /// The starts of the periods, in seconds since 1970. The last period has not ended yet.
    pub at: Vec<i64>,
    /// The seconds of each period that are counted: fewer than `step_s` for the last ones.
    pub counted_s: Vec<i64>,
    /// The numbers of attempts that started.
    pub started: Vec<u64>,
    /// The numbers of attempts that succeeded.
    pub succeeded: Vec<u64>,
    /// The numbers of attempts that failed, including those that are tried again.
    pub failed: Vec<u64>,
    /// The median of the times that jobs waited before the attempts that started, in seconds.
    pub wait_p50: Vec<Option<f64>>,
    /// The 99th percentile of the same.
    pub wait_p99: Vec<Option<f64>>,
    /// The median of the run times of attempts that ended, in seconds.
    pub run_p50: Vec<Option<f64>>,
    /// The 99th percentile of the same.
    pub run_p99: Vec<Option<f64>>,
    /// The time up to which everything is counted, in seconds since 1970. None if nothing was counted yet.
    pub upto: Option<i64>,
}

/// Counts of durations by bucket.
type Histogram = BTreeMap<i16, u64>;

impl Series {
    /// Returns the series of a range that ends now.
    #[must_use]
    pub fn of(rollups: &Rollups, range: Range) -> Self {
        let mut periods: HashMap<i64, [(u64, Histogram); 3]> = HashMap::new();
        for count in &rollups.counts {
            let period = periods.entry(count.at_s).or_default();
            let (times, durations) = match count.verb {
                Verb::Claim => &mut period[0],
                Verb::Succeed => &mut period[1],
                _ => &mut period[2],
            };
            *times += count.times;
            *durations.entry(count.bucket).or_default() += count.times;
        }
        let mut series = Self { step_s: range.step_s(), upto: rollups.upto_s, ..Self::default() };
        for index in 0..range.steps() {
            let at = range.from_s(rollups.now_s) + index * range.step_s();
            let [(started, waits), (succeeded, mut runs), (failed, lost)] =
                periods.remove(&at).unwrap_or_default();
            lost.into_iter().for_each(|(bucket, times)| *runs.entry(bucket).or_default() += times);
            series.at.push(at);
            series.counted_s.push(rollups.upto_s.map_or(0, |upto_s| (upto_s - at).clamp(0, range.step_s())));
            series.started.push(started);
            series.succeeded.push(succeeded);
            series.failed.push(failed);
            series.wait_p50.push(quantile(&waits, 0.5));
            series.wait_p99.push(quantile(&waits, 0.99));
            series.run_p50.push(quantile(&runs, 0.5));
            series.run_p99.push(quantile(&runs, 0.99));
        }
        series
    }
}

/// Returns a quantile of durations in seconds. Within a bucket, durations are taken as evenly distributed on a logarithmic scale.
fn quantile(durations: &Histogram, part: f64) -> Option<f64> {
    let known = || durations.iter().filter(|(bucket, _)| **bucket >= 0);
    let all: u64 = known().map(|(_, times)| times).sum();
    let rank = part * all as f64;
    let mut before = 0.0;
    for (&bucket, &times) in known() {
        let times = times as f64;
        if before + times >= rank && times > 0.0 {
            let inside = (rank - before) / times;
            return Some((f64::from(bucket) + inside).exp2() / 1000.0);
        }
        before += times;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::NO_BUCKET;

    #[test]
    fn a_series_has_a_value_for_each_period() {
        let now_s = 7_200_000 + 30;
        let count = |minutes_ago: i64, verb, bucket, times| Count {
            at_s: 7_200_000 - 60 * minutes_ago,
            verb,
            bucket,
            times,
        };
        let counts = vec![
            count(0, Verb::Claim, 10, 4),
            count(0, Verb::Succeed, 0, 98),
            count(0, Verb::Retry, 5, 1),
            count(0, Verb::Fail, 5, 1),
            count(59, Verb::Fail, NO_BUCKET, 2),
        ];
        let series = Series::of(&Rollups { now_s, counts, upto_s: Some(now_s) }, Range::Hour);
        assert_eq!((series.at.len(), series.at[59], series.failed[0]), (60, 7_200_000, 2));
        assert_eq!(series.counted_s[58..], [60, 30]);
        assert_eq!((series.started[59], series.succeeded[59], series.failed[59]), (4, 98, 2));
        assert_eq!((series.run_p50[0], series.wait_p50[0]), (None, None), "no duration is known");
        let (wait, run) = (series.wait_p50[59].unwrap(), series.run_p99[59].unwrap());
        assert!((1.4..1.5).contains(&wait) && (0.032..0.064).contains(&run), "{wait} {run}");
    }
}
