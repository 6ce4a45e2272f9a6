//! Conversion of records to the targets of a bulk job over a file.

use std::borrow::Cow;
use std::collections::HashMap;

use milepost_core::bulk::staged::{BadRow, Columns, Given};
use serde_json::value::RawValue;

use crate::bad_record::Flaw;
use crate::csv::{self, Decoder};
use crate::jsonl;
use crate::reading::Shape;

/// Converts records to rows of these columns, as they are staged: JSON objects.
pub struct Targets<'a> {
    columns: &'a Columns,
    /// The CSV columns, and the index of each column that the bulk job reads.
    places: Option<(csv::Columns, HashMap<&'a str, usize>)>,
    decoder: Decoder,
}

impl<'a> Targets<'a> {
    /// Creates the conversion for a bulk job with these columns.
    #[must_use]
    pub fn new(columns: &'a Columns) -> Self {
        Self { columns, places: None, decoder: Decoder::new() }
    }
}

impl Shape for Targets<'_> {
    type Made = String;

    fn header(&mut self, header: &[u8]) -> Result<(), Flaw> {
        let found = csv::Columns::new(header, None, false)?;
        let mut places = HashMap::new();
        for name in self.columns.names() {
            let place = found.position(name).ok_or_else(|| {
                let why = format!(
                    "there is no column {name:?}, which the bulk job reads; the columns are {}",
                    found.list()
                );
                Flaw::new(0, why)
            })?;
            places.insert(name, place);
        }
        self.places = Some((found, places));
        Ok(())
    }

    fn is_single(&self) -> bool {
        self.places.as_ref().is_some_and(|(columns, _)| columns.is_single())
    }

    fn make(&mut self, text: &[u8]) -> Result<String, Flaw> {
        match &self.places {
            Some((columns, places)) => {
                let fields = columns.fields(&mut self.decoder, text)?;
                let row = self.columns.row(|name| places.get(name).map(|&at| Given::Field(fields[at])));
                row.map_err(|bad| flaw(bad, |name| places.get(name).map(|&at| csv::field_start(text, at))))
            }
            None => of_line(self.columns, text),
        }
    }
}

/// Converts a JSON line to a row.
fn of_line(columns: &Columns, line: &[u8]) -> Result<String, Flaw> {
    let (text, _) = jsonl::read(line, None)?;
    let members: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(text).map_err(|_| Flaw::new(0, "this is not a JSON object"))?;
    let row = columns.row(|name| members.get(name).map(|value| Given::Json(value)));
    row.map_err(|bad| flaw(bad, |name| Some(members.get(name)?.get().as_ptr().addr() - line.as_ptr().addr())))
}

/// Converts a bad row to a flaw at the position of the bad value.
fn flaw(bad: BadRow, place: impl Fn(&str) -> Option<usize>) -> Flaw {
    let at = bad.column.as_deref().and_then(place).unwrap_or(0);
    Flaw::new(at, bad.why)
}
