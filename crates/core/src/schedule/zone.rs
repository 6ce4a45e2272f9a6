//! Lookup of time zones by name.

use std::sync::LazyLock;

use jiff::tz::{self, TimeZone, TimeZoneDatabase};

use super::error::InvalidSchedule;

/// The number of names suggested for an unknown one.
const SUGGESTED: usize = 3;
/// The minimum similarity of a suggestion; 1.0 means equal.
const LIKENESS_MIN: f64 = 0.75;
/// The maximum difference in similarity to the best suggestion.
const SPREAD: f64 = 0.1;

/// The maximum length of a name that is looked up, in bytes. The longest existing name has 32; the cost of finding similar names is
/// quadratic in the length.
const NAME_BYTES_MAX: usize = 100;

/// The time zones compiled into the binary, for machines without tzdata and for names that their tzdata no longer contains.
static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the time zone with this name. The machine's own data take precedence because they are updated more often than binaries.
pub(crate) fn named(name: &str) -> Result<TimeZone, InvalidSchedule> {
    let unknown = |nearest| InvalidSchedule::Zone { given: name.chars().take(60).collect(), nearest };
    // The names of files beside the zones, of which the first has another meaning on each machine.
    if name.len() > NAME_BYTES_MAX || ["localtime", "posixrules", "Factory"].contains(&name) {
        return Err(unknown(Vec::new()));
    }
    tz::db().get(name).or_else(|_| BUNDLED.get(name)).map_err(|_| unknown(nearest(name)))
}

/// Returns known names that are similar to this one, or whose city is, best match first.
fn nearest(given: &str) -> Vec<String> {
    let given = given.to_lowercase();
    let city = |name: &str| name.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let mut names: Vec<(f64, String)> = BUNDLED
        .available()
        .map(|name| {
            let known = name.as_str().to_lowercase().replace('_', " ");
            let asked = given.replace('_', " ");
            let whole = strsim::jaro_winkler(&known, &asked);
            let part = strsim::normalized_damerau_levenshtein(&city(&known), &city(&asked));
            (whole.max(part), name.as_str().to_owned())
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let best = names.first().map_or(0.0, |(likeness, _)| *likeness);
    let near = names.into_iter().take_while(|(likeness, _)| best - likeness < SPREAD);
    near.take(SUGGESTED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_without_the_machines_data() {
        assert!(BUNDLED.get("Europe/Berlin").is_ok());
        assert!(named("US/Pacific").is_ok(), "an old name that some systems omit");
        assert!(named("utc").is_ok());
    }

    #[test]
    fn files_beside_the_zones_are_no_zones() {
        for name in ["localtime", "posixrules", "Factory"] {
            assert!(named(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_unknown_zone_is_answered_with_the_nearest_names() {
        let nearest = |name: &str| match named(name) {
            Err(InvalidSchedule::Zone { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest("Europe/Berlim")[0], "Europe/Berlin");
        assert_eq!(nearest("berlin")[0], "Europe/Berlin");
        assert_eq!(nearest("America/NewYork")[0], "America/New_York");
        assert_eq!(nearest("!"), Vec::<String>::new());
    }
}
