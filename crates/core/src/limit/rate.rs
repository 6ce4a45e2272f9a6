//! A rate: how many starts in a time, and how many at once after a pause.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::InvalidLimit;

/// The lowest rate: one in 30 days.
const PER_SECOND_MIN: f64 = 1.0 / (30.0 * 86_400.0);
/// The highest rate. A start costs a whole number of microseconds, so that beyond it the rate would be missed.
const PER_SECOND_MAX: f64 = 10_000.0;
/// The largest burst.
const BURST_MAX: u32 = 1_000_000;
/// What a rate is told in.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A token bucket: `burst` tokens when it is full, `per_second` come back in a second, a start takes one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// How many tokens come back in a second.
    pub per_second: f64,
    /// How many it holds: so many may start at once after a pause.
    pub burst: u32,
}

impl Rate {
    /// A rate with its burst. [`check`](Self::check) says whether it can be.
    #[must_use]
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }

    /// A rate with the burst that it has when nobody says otherwise: what comes back in a second, at least one.
    #[must_use]
    pub fn steady(per_second: f64) -> Self {
        Self { per_second, burst: (per_second.clamp(1.0, PER_SECOND_MAX)) as u32 }
    }

    /// Checks that it is in range.
    ///
    /// # Errors
    /// [`InvalidLimit`] names the rate or the burst.
    pub fn check(&self) -> Result<(), InvalidLimit> {
        // Written so that what is no number is out of range, too. A billionth of leeway, for thirds.
        let leeway = 1.0 - 1e-9;
        if !(self.per_second >= PER_SECOND_MIN * leeway && self.per_second <= PER_SECOND_MAX) {
            return Err(InvalidLimit::Rate { per_second: self.per_second });
        }
        if !(1..=BURST_MAX).contains(&self.burst) {
            return Err(InvalidLimit::Burst { burst: self.burst });
        }
        Ok(())
    }

    /// How many tokens must be there before any is given out. At high rates they go out in portions of a
    /// hundredth of a second, so that a claim is not made for each; never so many that the bucket could
    /// overflow meanwhile.
    #[must_use]
    pub fn portion(&self) -> u32 {
        let of_time = (self.per_second / 100.0) as u32;
        of_time.min(self.burst / 2).max(1)
    }

    /// Reads how many a second from `N/PERIOD`: a number and `s`, `m`, `h`, `d`, or such a unit with a number.
    ///
    /// # Errors
    /// [`InvalidLimit::RateText`] repeats the text; [`InvalidLimit::Rate`] when it is out of range.
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

/// A number without sign, exponent or words such as `inf`.
fn plain_number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain.then(|| f64::from_str(text).ok()).flatten()
}

impl fmt::Display for Rate {
    /// `10/s`, `100/m`: in the first unit in which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, seconds) in UNITS {
            let count = self.per_second * seconds;
            let whole = count.round();
            if whole >= 1.0 && (count - whole).abs() < 1e-6 * whole {
                return write!(f, "{whole}/{unit}");
            }
        }
        write!(f, "{:.3}/h", self.per_second * 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for text in ["10/s", "100/m", "2000/h", "5/d", "1/s", "7/h"] {
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
