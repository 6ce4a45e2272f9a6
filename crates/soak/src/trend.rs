//! Decides whether a series of measurements grows.

use serde::Serialize;

/// The most points from which a slope is computed; more are thinned out.
const POINTS_MAX: usize = 400;

/// A series of measurements of one quantity.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Series {
    /// The times in seconds from the begin, and the values.
    points: Vec<(f64, f64)>,
}

/// The allowed growth of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Bound {
    /// The growth over the whole time that is allowed, as a share of the usual value.
    pub(crate) share: f64,
    /// The growth that is allowed anyway, in the unit of the quantity.
    pub(crate) slack: f64,
}

/// The course of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Trend {
    /// The median of the first quarter.
    pub(crate) begin: f64,
    /// The median of the last quarter.
    pub(crate) end: f64,
    /// The growth over the whole time, by the slope of Theil and Sen: the median of the slopes of all pairs, which single peaks do not change.
    pub(crate) growth: f64,
    /// The growth that is allowed.
    pub(crate) allowed: f64,
}

impl Trend {
    /// Returns whether it grew no more than allowed.
    pub(crate) fn is_flat(&self) -> bool {
        self.growth <= self.allowed
    }
}

impl Series {
    pub(crate) fn push(&mut self, at_s: f64, value: f64) {
        self.points.push((at_s, value));
    }

    /// Returns the trend of the values after this time; none if there are fewer than eight.
    pub(crate) fn trend(&self, after_s: f64, bound: Bound) -> Option<Trend> {
        let points: Vec<(f64, f64)> = self.points.iter().copied().filter(|(at, _)| *at >= after_s).collect();
        if points.len() < 8 {
            return None;
        }
        let value = |points: &[(f64, f64)]| median(points.iter().map(|(_, value)| *value).collect());
        let quarter = points.len() / 4;
        let span = points[points.len() - 1].0 - points[0].0;
        let usual = value(&points);
        Some(Trend {
            begin: value(&points[..quarter]),
            end: value(&points[points.len() - quarter..]),
            growth: slope(&thinned(&points)) * span,
            allowed: (usual * bound.share).max(bound.slack),
        })
    }
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX);
    points.iter().copied().step_by(step).collect()
}

/// Returns the median of the slopes of all pairs of points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let of_pair = |(a, b): (&(f64, f64), &(f64, f64))| (b.1 - a.1) / (b.0 - a.0);
    let pairs = points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)));
    median(pairs.filter(|(a, b)| b.0 > a.0).map(of_pair).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Bound = Bound { share: 0.1, slack: 0.0 };

    fn series(value: impl Fn(f64) -> f64) -> Series {
        let mut series = Series::default();
        (0..200).map(f64::from).for_each(|at| series.push(at, value(at)));
        series
    }

    #[test]
    fn a_value_that_swings_is_flat() {
        let trend = series(|at| 100.0 + 20.0 * (at / 7.0).sin()).trend(0.0, TENTH).unwrap();
        assert!(trend.is_flat(), "{trend:?}");
    }

    #[test]
    fn a_value_that_grows_a_little_all_the_time_is_not_flat() {
        let trend = series(|at| 100.0 + at * 0.1).trend(0.0, TENTH).unwrap();
        assert!(!trend.is_flat() && trend.growth > 19.0, "{trend:?}");
    }

    #[test]
    fn single_peaks_do_not_count() {
        let trend = series(|at| if at > 190.0 { 10_000.0 } else { 100.0 }).trend(0.0, TENTH).unwrap();
        assert!(trend.is_flat(), "{trend:?}");
    }

    #[test]
    fn the_time_before_does_not_count() {
        let grows_first = series(|at| at.min(100.0));
        assert!(!grows_first.trend(0.0, TENTH).unwrap().is_flat());
        assert!(grows_first.trend(100.0, TENTH).unwrap().is_flat());
    }

    #[test]
    fn a_value_that_shrinks_is_flat() {
        assert!(series(|at| 300.0 - at).trend(0.0, TENTH).unwrap().is_flat());
    }

    #[test]
    fn few_points_have_no_trend() {
        assert_eq!(series(|at| at).trend(195.0, TENTH), None);
    }
}
