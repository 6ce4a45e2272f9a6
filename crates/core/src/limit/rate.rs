//! Start rates: starts per time, and the burst after a pause.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::InvalidLimit;

/// The lowest rate: one in 30 days.
const PER_SECOND_MIN: f64 = 1.0 / (30.0 * 86_400.0);
/// The highest rate. The cost of a start is rounded up to whole microseconds; at higher rates the error would be too large.
const PER_SECOND_MAX: f64 = 10_000.0;
/// The largest burst.
const BURST_MAX: u32 = 1_000_000;
/// The units of a rate's period, in seconds.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A token bucket: it holds `burst` tokens when full, `per_second` tokens are refilled per second, and a start takes one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// The number of tokens refilled per second.
    pub per_second: f64,
    /// The capacity: the number of jobs that may start at the same time after a pause.
    pub burst: u32,
}

impl Rate {
    /// Creates a rate with a burst. [`check`](Self::check) validates it.
    #[must_use]
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }

    /// Creates a rate with the default burst: the number of tokens refilled in a second, at least one.
    #[must_use]
    pub fn steady(per_second: f64) -> Self {
        Self { per_second, burst: (per_second.clamp(1.0, PER_SECOND_MAX)) as u32 }
    }

    /// Checks that rate and burst are in range.
    ///
    /// # Errors
    /// [`InvalidLimit`] for the rate or the burst.
    pub fn check(&self) -> Result<(), InvalidLimit> {
        // Written so that NaN is out of range too. The relative tolerance of 1e-9 is for values such as 1/3.
        let leeway = 1.0 - 1e-9;
        if !(self.per_second >= PER_SECOND_MIN * leeway && self.per_second <= PER_SECOND_MAX) {
            return Err(InvalidLimit::Rate { per_second: self.per_second });
        }
        if !(1..=BURST_MAX).contains(&self.burst) {
            return Err(InvalidLimit::Burst { burst: self.burst });
        }
        Ok(())
    }

    /// Returns how many tokens must be available before any is given out. At high rates tokens are given out in
    /// portions of a hundredth of a second, so that not every token needs a separate claim. A portion is at most half
    /// of the burst, so that the bucket does not overflow while a portion accumulates.
    #[must_use]
    pub fn portion(&self) -> u32 {
        let of_time = (self.per_second / 100.0) as u32;
        of_time.min(self.burst / 2).max(1)
    }

    /// Parses `N/PERIOD` and returns the rate per second. The period is `s`, `m`, `h` or `d`, optionally with a number before it.
    ///
    /// # Errors
    /// [`InvalidLimit::RateText`] with the text; [`InvalidLimit::Rate`] when the rate is out of range.
    pub fn parse_per_second(text: &str) -> Result<f64, InvalidLimit> {
        let bad = || InvalidLimit::RateText { text: text.to_owned() };
        let (count, period) = text.split_once('/').ok_or_else(bad)?;
        let count: f64 = plain_number(count).ok_or_else(bad)?;
        let digits = period.len() - period.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, unit) = period.split_at(digits);
        let number = if number.is_empty() { 1.0 } else { plain_number(number).ok_or_else(bad)? };
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let per_second = count / (number * seconds);
        Self { per_second, burst: 1 }.check()?;
        Ok(per_second)
    }
}

/// Parses a number without sign, exponent or words such as `inf`.
fn plain_number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain.then(|| f64::from_str(text).ok()).flatten()
}

impl fmt::Display for Rate {
    /// Writes `10/s` or `100/m`, in the first unit that gives a whole number, `1.500/h` if none does, and `1/36h` for less than one an hour.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, seconds) in UNITS {
            let count = self.per_second * seconds;
            let whole = count.round();
            if whole >= 1.0 && (count - whole).abs() < 1e-6 * whole {
                return write!(f, "{whole}/{unit}");
            }
        }
        if self.per_second * 3600.0 >= 1.0 {
            return write!(f, "{:.3}/h", self.per_second * 3600.0);
        }
        let interval = 1.0 / self.per_second;
        let (unit, seconds) = UNITS
            .into_iter()
            .rev()
            .find(|(_, seconds)| {
                let whole = (interval / seconds).round();
                whole >= 1.0 && (interval / seconds - whole).abs() < 1e-6 * whole
            })
            .unwrap_or(UNITS[0]);
        write!(f, "1/{:.0}{unit}", interval / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for text in ["10/s", "100/m", "2000/h", "5/d", "1/s", "7/h", "1/30d", "1/36h", "1/100001s"] {
            assert_eq!(Rate::steady(Rate::parse_per_second(text).unwrap()).to_string(), text);
        }
        assert_eq!(Rate::parse_per_second("0.5/s"), Ok(0.5));
        assert_eq!(Rate::parse_per_second("30/15m"), Ok(30.0 / 900.0));
        assert_eq!(Rate::parse_per_second("1/30d"), Ok(PER_SECOND_MIN));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in
            ["", "10", "10/", "/s", "10/x", "ten/s", "-1/s", "1e3/s", "inf/s", "10/-1s", "1/s/s", "1.2.3/s"]
        {
            let refused = Rate::parse_per_second(text);
            assert!(matches!(refused, Err(InvalidLimit::RateText { .. })), "{text}: {refused:?}");
        }
        for text in ["0/s", "1/0s", "20000/s", "1/31d"] {
            let refused = Rate::parse_per_second(text);
            assert!(matches!(refused, Err(InvalidLimit::Rate { .. })), "{text}: {refused:?}");
        }
        assert_eq!(Rate::new(1.0, 0).check(), Err(InvalidLimit::Burst { burst: 0 }));
        assert!(Rate::new(f64::NAN, 1).check().is_err());
    }

    #[test]
    fn a_portion_never_lets_the_bucket_overflow() {
        for (per_second, burst, portion) in
            [(10.0, 20, 1), (1000.0, 1000, 10), (1000.0, 1, 1), (1000.0, 4, 2), (10_000.0, 1_000_000, 100)]
        {
            assert_eq!(Rate::new(per_second, burst).portion(), portion, "{per_second} {burst}");
        }
    }
}
