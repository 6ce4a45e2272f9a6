//! Totals of the countries: computed here without a batch, and read from the output of the batch.

use std::collections::BTreeMap;

use anyhow::Result;
use csv::{Reader, StringRecord};

use crate::places::Place;

/// The precision of degrees in the batch's output: four digits.
const DEGREES: f64 = 0.000_1;

/// The totals of a country.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    pub(super) places: u64,
    /// The mean of all latitudes, in degrees.
    pub(super) lat: f64,
    pub(super) lng: f64,
    /// The name of the northernmost place.
    pub(super) north: String,
}

impl Total {
    /// Returns whether two totals are equal within the precision of the output.
    fn agrees(&self, other: &Self) -> bool {
        self.places == other.places
            && self.north == other.north
            && (self.lat - other.lat).abs() < DEGREES
            && (self.lng - other.lng).abs() < DEGREES
    }
}

/// Computes the totals of each country.
pub(super) fn of(places: impl Iterator<Item = Result<Place>>) -> Result<BTreeMap<String, Total>> {
    let mut totals: BTreeMap<String, (Total, f64)> = BTreeMap::new();
    for place in places {
        let Place { name, country, lat, lng, .. } = place?;
        let none = || (Total { places: 0, lat: 0.0, lng: 0.0, north: String::new() }, f64::MIN);
        let (total, north) = totals.entry(country).or_insert_with(none);
        total.places += 1;
        total.lat += lat;
        total.lng += lng;
        if lat > *north {
            *north = lat;
            // The programs of the example also remove these characters, because they write JSON without escaping.
            total.north = name.replace(['"', '\\'], "");
        }
    }
    let middle = |(total, _): (Total, f64)| {
        let places = total.places as f64;
        Total { lat: total.lat / places, lng: total.lng / places, ..total }
    };
    Ok(totals.into_iter().map(|(country, total)| (country, middle(total))).collect())
}

/// Reads the lines that the batch wrote, in their order.
pub(super) fn read(csv: &str) -> Result<Vec<(String, Total)>> {
    Reader::from_reader(csv.as_bytes()).into_records().map(|line| total(&line?)).collect()
}

fn total(line: &StringRecord) -> Result<(String, Total)> {
    let (places, country, lat, lng, north) = line.deserialize(None)?;
    Ok((country, Total { places, lat, lng, north }))
}

/// Counts the countries with no line, several lines or a wrong line, and the lines of unknown countries.
pub(super) fn wrong(lines: &[(String, Total)], expected: &BTreeMap<String, Total>) -> u64 {
    let right = |(country, total): (&String, &Total)| {
        let mut own = lines.iter().filter(|(of, _)| of == country);
        own.next().is_some_and(|(_, line)| line.agrees(total)) && own.next().is_none()
    };
    let wrong = expected.iter().filter(|country| !right(*country)).count();
    let foreign = lines.iter().filter(|(country, _)| !expected.contains_key(country)).count();
    (wrong + foreign) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, country: &str, lat: f64) -> Result<Place> {
        Ok(Place { id: 1, name: name.to_owned(), country: country.to_owned(), lat, lng: 1.0 })
    }

    const CSV: &str =
        "places,country,lat,lng,north\n2,US,51.6950,1.0000,\"Nome, \"\n1,AD,42.5300,1.0000,\"Vila\"\n";

    #[test]
    fn what_the_batch_wrote_agrees_only_when_each_country_has_its_line_once() {
        let places =
            [place("D.C.", "US", 38.89), place("\"Nome\", ", "US", 64.5), place("Vila", "AD", 42.53)];
        let expected = of(places.into_iter()).unwrap();
        let wrong = |csv: &str| super::wrong(&read(csv).unwrap(), &expected);
        assert_eq!(wrong(CSV), 0);
        assert_eq!(wrong(&CSV.replace("2,US", "3,US")), 1, "a place came twice");
        assert_eq!(wrong(&CSV.replace("51.6950", "51.6952")), 1);
        assert_eq!(wrong(&CSV.replace("Vila", "El Tarter")), 1);
        assert_eq!(wrong(&CSV.replace("AD", "AE")), 2, "one is missing, one is foreign");
        assert_eq!(wrong(&format!("{CSV}1,AD,42.5300,1.0000,\"Vila\"\n")), 1, "a country came twice");
    }
}
