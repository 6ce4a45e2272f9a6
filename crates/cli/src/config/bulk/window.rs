//! `windows` of a bulk job.

use anyhow::Result;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use milepost::bulk::{InvalidWindow, Window, Windows};
use schemars::JsonSchema;
use serde::Deserialize;

/// From one time of day to another. A window that ends before it begins spans midnight and belongs to the day on which
/// it begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowEntry {
    /// When it opens, such as `22:00`.
    #[schemars(extend("format" = "milepost-time"))]
    from: String,
    /// When it closes, such as `06:00`.
    #[schemars(extend("format" = "milepost-time"))]
    to: String,
    /// On which days: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`. The default is all of them.
    #[serde(default)]
    #[schemars(length(min = 1))]
    days: Option<Vec<Day>>,
}

// Without doc comments on the days: they would turn the schema's plain list of names into separate alternatives.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

const ALL: [Day; 7] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];

impl From<Day> for Weekday {
    fn from(day: Day) -> Self {
        match day {
            Day::Mon => Self::Monday,
            Day::Tue => Self::Tuesday,
            Day::Wed => Self::Wednesday,
            Day::Thu => Self::Thursday,
            Day::Fri => Self::Friday,
            Day::Sat => Self::Saturday,
            Day::Sun => Self::Sunday,
        }
    }
}

impl WindowEntry {
    fn window(&self) -> Result<Window> {
        let days = self.days.as_deref().unwrap_or(&ALL);
        let days = days.iter().copied().map(Weekday::from).collect();
        Ok(Window::new(self.from.parse()?, self.to.parse()?, days)?)
    }
}

/// Returns the windows of a checked file; `None` means always open.
pub(super) fn windows(entries: &[WindowEntry], zone: Option<&str>) -> Result<Option<Windows>> {
    if entries.is_empty() {
        return Ok(None);
    }
    let windows = entries.iter().map(WindowEntry::window).collect::<Result<_>>()?;
    let zone = zone.map_or(Ok(TimeZone::UTC), TimeZone::get)?;
    Ok(Some(Windows::new(windows, zone)))
}

/// Returns the error in the times of a window, independent of its days.
pub(super) fn fault(from: &str, to: &str) -> Option<InvalidWindow> {
    // Invalid times were reported already.
    let (from, to) = (from.parse::<Time>().ok()?, to.parse::<Time>().ok()?);
    Window::new(from, to, vec![Weekday::Monday]).err()
}
