//! The nominal time of a batch: its tick, and the tick's calendar date in a time zone.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::error::InvalidBatch;
use crate::schedule::zone::named as zone_named;

/// The default time zone of the date.
pub const ZONE_DEFAULT: &str = "UTC";
/// The first and last second that every store can keep.
const SECONDS: (i64, i64) = (-62_135_510_400, 253_402_128_000);

/// The tick of a batch, from the schedule that started it or given by the caller who started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NominalTime {
    /// The instant.
    pub at: Timestamp,
    /// The IANA name of the time zone that determines the date.
    pub zone: String,
}

impl NominalTime {
    /// Returns the nominal time in these two columns; `None` when the batch has no tick.
    #[must_use]
    pub fn of_columns(at: Option<Timestamp>, zone: Option<String>) -> Option<Self> {
        Some(Self { at: at?, zone: zone.unwrap_or_else(|| ZONE_DEFAULT.to_owned()) })
    }

    /// Returns the first instant of a date in a time zone.
    ///
    /// # Errors
    /// [`InvalidBatch::NominalTime`] for an unknown zone or a date that is out of range.
    pub fn of_date(date: Date, zone: &str) -> Result<Self, InvalidBatch> {
        let refuse = |why: String| InvalidBatch::NominalTime { why };
        let of = zone_named(zone).map_err(|unknown| refuse(unknown.to_string()))?;
        let first = date.to_zoned(of).map_err(|error| refuse(error.to_string()))?;
        if first.date() != date {
            return Err(refuse(format!(
                "{date} does not exist in {zone}: the clocks were set forward by a day"
            )));
        }
        Ok(Self { at: first.timestamp(), zone: zone.to_owned() })
    }

    /// Returns its calendar date; `None` for a time zone that this machine does not know.
    #[must_use]
    pub fn date(&self) -> Option<Date> {
        Some(zone_named(&self.zone).ok()?.to_datetime(self.at).date())
    }

    /// Returns its calendar date and time zone as text for users.
    #[must_use]
    pub fn dated(&self) -> String {
        match self.date() {
            Some(date) => format!("{date} in {}", self.zone),
            None => self.zone.clone(),
        }
    }

    /// Returns the value of `tick` in expressions. The dates are omitted for a time zone that this machine does not know.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut tick = json!({ "time": self.at.to_string(), "zone": self.zone });
        if let Some(date) = self.date() {
            tick["date"] = json!(date.to_string());
            tick["previous_date"] = json!(date.yesterday().unwrap_or(date).to_string());
        }
        tick
    }

    /// Checks that the time zone is known and that stores can keep the time.
    ///
    /// # Errors
    /// [`InvalidBatch::NominalTime`].
    pub fn check(&self) -> Result<(), InvalidBatch> {
        let refuse = |why: String| Err(InvalidBatch::NominalTime { why });
        if !(SECONDS.0..=SECONDS.1).contains(&self.at.as_second()) {
            return refuse("it must be a time from 0001-01-02 to 9999-12-30".to_owned());
        }
        zone_named(&self.zone).map_or_else(|unknown| refuse(unknown.to_string()), |_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nominal(at: &str, zone: &str) -> NominalTime {
        NominalTime { at: at.parse().unwrap(), zone: zone.to_owned() }
    }

    #[test]
    fn the_date_is_of_the_zone() {
        let tick = |zone| nominal("2026-03-01T02:30:00Z", zone).value();
        assert_eq!(
            tick("UTC"),
            json!({
                "time": "2026-03-01T02:30:00Z", "date": "2026-03-01", "previous_date": "2026-02-28", "zone": "UTC"
            })
        );
        assert_eq!(tick("America/New_York")["date"], "2026-02-28");
        assert_eq!(tick("America/New_York")["previous_date"], "2026-02-27");
        assert_eq!(tick("Asia/Tokyo")["date"], "2026-03-01");
        assert_eq!(nominal("2026-03-01T15:00:00Z", "Asia/Tokyo").dated(), "2026-03-02 in Asia/Tokyo");
        assert_eq!(
            tick("Nowhere/At_All"),
            json!({ "time": "2026-03-01T02:30:00Z", "zone": "Nowhere/At_All" })
        );
    }

    #[test]
    fn a_date_stands_for_its_first_instant() {
        let first = |date: &str, zone| NominalTime::of_date(date.parse().unwrap(), zone).unwrap();
        assert_eq!(first("2026-11-22", "Europe/Berlin").at.to_string(), "2026-11-21T23:00:00Z");
        assert_eq!(first("2026-11-22", "Europe/Berlin").value()["date"], "2026-11-22");
        let without_midnight = first("2018-11-04", "America/Sao_Paulo");
        assert_eq!(without_midnight.at.to_string(), "2018-11-04T03:00:00Z", "01:00 there");
        assert!(NominalTime::of_date("2026-11-22".parse().unwrap(), "Nowhere").is_err());
        let left_out = NominalTime::of_date("2011-12-30".parse().unwrap(), "Pacific/Apia").unwrap_err();
        assert!(left_out.to_string().contains("2011-12-30 does not exist in Pacific/Apia"), "{left_out}");
    }

    #[test]
    fn a_time_or_a_zone_that_no_store_keeps_is_refused() {
        assert_eq!(nominal("2026-03-01T02:30:00Z", "Europe/Berlin").check(), Ok(()));
        assert_eq!(nominal("0001-01-02T00:00:00Z", "UTC").check(), Ok(()));
        assert_eq!(nominal("9999-12-30T00:00:00Z", "UTC").check(), Ok(()));
        for bad in ["0001-01-01T23:59:59Z", "9999-12-30T00:00:01Z", "-000001-01-01T00:00:00Z"] {
            assert!(matches!(nominal(bad, "UTC").check(), Err(InvalidBatch::NominalTime { .. })), "{bad}");
        }
        let unknown = nominal("2026-03-01T02:30:00Z", "Europe/Berlim").check().unwrap_err().to_string();
        assert!(unknown.contains("Europe/Berlin"), "{unknown}");
    }
}
