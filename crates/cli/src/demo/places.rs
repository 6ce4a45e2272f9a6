//! The places that the demo works on: real data, embedded in the binary.

use std::io::{BufRead, BufReader, Write};

use anyhow::{Context, Result, bail};
use flate2::bufread::GzDecoder;
use serde::{Deserialize, Serialize};

use crate::records::csv::Decoder;

/// GeoNames, CC BY 4.0; `data/README.md` describes the source.
const PACKED: &[u8] = include_bytes!("../../data/cities.csv.gz");
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

/// An iterator over the places.
pub(super) struct Places {
    csv: BufReader<GzDecoder<&'static [u8]>>,
    decoder: Decoder,
    line: Vec<u8>,
}

impl Places {
    pub(super) fn open() -> Result<Self> {
        let csv = BufReader::new(GzDecoder::new(PACKED));
        let mut places = Self { csv, decoder: Decoder::new(), line: Vec::new() };
        let header = places.fields()?.map(|names| names.join(","));
        if header.as_deref() != Some("id,name,country,lat,lng") {
            bail!("the places in this binary have the unexpected header {header:?}");
        }
        Ok(places)
    }

    /// Returns `count` places, spread over the whole world.
    pub(super) fn spread(count: u32) -> Result<impl Iterator<Item = Result<Place>>> {
        Ok(Self::open()?.step_by(step(count)).take(count as usize))
    }

    fn fields(&mut self) -> Result<Option<Vec<&str>>> {
        self.line.clear();
        if self.csv.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        match self.decoder.fields(&self.line) {
            Ok(fields) => Ok(Some(fields)),
            Err(flaw) => bail!("{flaw:?} in {:?}", String::from_utf8_lossy(&self.line)),
        }
    }

    fn read(&mut self) -> Result<Option<Place>> {
        let Some(fields) = self.fields()? else { return Ok(None) };
        let [id, name, country, lat, lng] = fields[..] else { bail!("{} fields: {fields:?}", fields.len()) };
        Ok(Some(Place {
            id: id.parse()?,
            name: name.to_owned(),
            country: country.to_owned(),
            lat: lat.parse()?,
            lng: lng.parse()?,
        }))
    }
}

/// Writes the places of [`Places::spread`] as CSV, unchanged.
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

impl Iterator for Places {
    type Item = Result<Place>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().context("cannot read the places in this binary").transpose()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_place_is_read_and_ids_count_from_one() {
        let mut count = 0;
        for place in Places::open().unwrap() {
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
        let spread: Vec<Place> = Places::spread(1000).unwrap().map(Result::unwrap).collect();
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
