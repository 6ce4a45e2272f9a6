//! The places that the demo works on: real data, embedded in the binary.

use std::io::{BufRead, BufReader, Write};

use anyhow::{Context, Result};
use csv::Reader;
use flate2::bufread::GzDecoder;
use serde::{Deserialize, Serialize};

/// GeoNames, CC BY 4.0; `data/README.md` describes the source.
const PACKED: &[u8] = include_bytes!("../data/cities.csv.gz");
/// The number of places.
pub(super) const PLACES_MAX: u32 = 171_075;

/// A place of the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) country: String,
    pub(super) lat: f64,
    pub(super) lng: f64,
}

/// Returns all places, in the order of their ids.
pub(super) fn all() -> impl Iterator<Item = Result<Place>> {
    let places = Reader::from_reader(BufReader::new(GzDecoder::new(PACKED))).into_deserialize();
    places.map(|place| place.context("cannot read the places in this binary"))
}

/// Returns `count` places, spread over the whole world.
pub(super) fn spread(count: u32) -> impl Iterator<Item = Result<Place>> {
    all().step_by(step(count)).take(count as usize)
}

/// Writes the places of [`spread`] as CSV, unchanged.
pub(super) fn write_spread(count: u32, to: &mut impl Write) -> Result<()> {
    let mut lines = BufReader::new(GzDecoder::new(PACKED)).lines();
    let header = lines.next().context("this binary contains no places")??;
    writeln!(to, "{header}")?;
    for line in lines.step_by(step(count)).take(count as usize) {
        writeln!(to, "{}", line?)?;
    }
    Ok(())
}

/// Returns the step between selected places. Places are sorted by country.
const fn step(count: u32) -> usize {
    match PLACES_MAX.checked_div(count) {
        Some(step @ 1..) => step as usize,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_place_is_read_and_ids_count_from_one() {
        let mut count = 0;
        for place in all() {
            count += 1;
            assert_eq!(place.unwrap().id, count);
        }
        assert_eq!(count, PLACES_MAX);
    }

    #[test]
    fn a_few_places_are_from_many_countries_and_their_csv_has_the_same() {
        let mut csv = Vec::new();
        write_spread(1000, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let spread: Vec<Place> = spread(1000).map(Result::unwrap).collect();
        let ids = csv.lines().skip(1).map(|line| line.split(',').next().unwrap().parse::<u32>().unwrap());
        assert!(ids.eq(spread.iter().map(|place| place.id)));
        let countries: std::collections::BTreeSet<&str> =
            spread.iter().map(|place| place.country.as_str()).collect();
        assert_eq!((spread.len(), countries.len() > 100), (1000, true));
    }

    #[test]
    fn the_packed_places_stay_small() {
        assert!(PACKED.len() <= 3_000_000, "{}", PACKED.len());
    }
}
