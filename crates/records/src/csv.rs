//! CSV: end of records, fields, and conversion of rows to JSON objects.

use std::collections::HashSet;

use csv_core::ReadRecordResult;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::bad_record::Flaw;
use crate::jsonl::utf8;

/// U+FEFF, as UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Tracks the quotes of a record across its lines. It is stricter than the decoder, which continues after misplaced quotes and would join
/// unrelated rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quotes {
    state: QuoteState,
    seen: usize,
    opened_at: usize,
    lines: usize,
    opened_in: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteState {
    FieldStart,
    Unquoted,
    Quoted,
    Closed,
}

impl Quotes {
    pub(crate) const fn new() -> Self {
        Self { state: QuoteState::FieldStart, seen: 0, opened_at: 0, lines: 0, opened_in: 0 }
    }

    /// Processes the next line and returns whether the record ends with it.
    pub(crate) fn follow(&mut self, line: &[u8]) -> Result<bool, Flaw> {
        use QuoteState::{Closed, FieldStart, Quoted, Unquoted};
        for &byte in line {
            self.state = match (self.state, byte) {
                (FieldStart, b'"') => {
                    (self.opened_at, self.opened_in) = (self.seen, self.lines);
                    Quoted
                }
                (Unquoted, b'"') => {
                    let why = "a quote inside a field that does not begin with one; quote the whole field and double this one";
                    return Err(Flaw::new(self.seen, why));
                }
                (Quoted, b'"') => Closed,
                (Quoted, _) | (Closed, b'"') => Quoted,
                (FieldStart | Unquoted | Closed, b',') => FieldStart,
                (Closed, b'\r' | b'\n') => Closed,
                (Closed, _) => return Err(self.text_after_quote()),
                (FieldStart | Unquoted, _) => Unquoted,
            };
            self.seen += 1;
        }
        self.lines += 1;
        Ok(self.state != Quoted)
    }

    /// The error for text after a closing quote. In a field over several lines, the opening quote is more likely the misplaced one.
    fn text_after_quote(&self) -> Flaw {
        match self.lines - self.opened_in {
            0 => Flaw::new(self.seen, "there is text after the closing quote of a field"),
            lines => {
                let ending = if lines == 1 { "" } else { "s" };
                let why = format!(
                    "the quote that opens here is closed {lines} line{ending} further down, where text follows it"
                );
                Flaw::new(self.opened_at, why)
            }
        }
    }

    /// The error for a record whose quoted field is not closed.
    pub(crate) fn never_closed(&self) -> Flaw {
        Flaw::new(self.opened_at, "the quote that opens here is never closed")
    }

    /// The error for a record whose quoted field is not closed within the maximum length of a record.
    pub(crate) fn too_far(&self, bytes_max: usize) -> Flaw {
        let mib = bytes_max >> 20;
        let why =
            format!("the quote that opens here is not closed within {mib} MiB, the most a record may have");
        Flaw::new(self.opened_at, why)
    }
}

/// Decodes records into fields.
pub struct Decoder {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Creates a decoder.
    #[must_use]
    pub fn new() -> Self {
        // Not the default reader, which has no tables of states yet.
        Self { reader: csv_core::Reader::new(), text: Vec::new(), ends: Vec::new() }
    }

    /// Returns the fields of a complete record.
    pub fn fields(&mut self, record: &[u8]) -> Result<Vec<&str>, Flaw> {
        utf8(record)?;
        let line_end = record.strip_suffix(b"\n").unwrap_or(record);
        let record = line_end.strip_suffix(b"\r").unwrap_or(line_end);
        self.reader.reset();
        // Decoded text is never longer than its source, and each field except the first was preceded by a comma.
        self.text.resize(record.len() + 1, 0);
        self.ends.resize(record.len() + 2, 0);
        if record.starts_with(BYTE_ORDER_MARK) {
            // Only the start of a file has a byte order mark, and that was removed before. The decoder would drop another one at its first
            // record.
            let _ = self.reader.read_record(b"\n", &mut self.text, &mut self.ends);
        }
        let (result, taken, written, mut count) =
            self.reader.read_record(record, &mut self.text, &mut self.ends);
        if result == ReadRecordResult::Record {
            return Err(Flaw::new(taken.saturating_sub(1), "a carriage return inside a row"));
        }
        // An empty input marks the end of the record.
        let (_, _, _, last) =
            self.reader.read_record(&[], &mut self.text[written..], &mut self.ends[count..]);
        count += last;
        let mut start = 0;
        let mut fields = Vec::with_capacity(count);
        for &end in &self.ends[..count] {
            fields.push(utf8(&self.text[start..end])?);
            start = end;
        }
        Ok(fields)
    }
}

/// The columns named by the header row.
pub struct Columns {
    names: Vec<String>,
    key: Option<usize>,
    infer: bool,
}

impl Columns {
    /// Reads the header row.
    pub fn new(header: &[u8], key_column: Option<&str>, infer: bool) -> Result<Self, Flaw> {
        let mut decoder = Decoder::new();
        let fields = decoder.fields(header)?;
        let mut known = HashSet::with_capacity(fields.len());
        for (index, name) in fields.iter().enumerate() {
            if name.is_empty() {
                return Err(Flaw::new(field_start(header, index), "this column has no name"));
            }
            if !known.insert(*name) {
                let why = format!("there are two columns {name:?}");
                return Err(Flaw::new(field_start(header, index), why));
            }
        }
        let key = match key_column {
            None => None,
            Some(column) => Some(fields.iter().position(|name| *name == column).ok_or_else(|| {
                let known = fields.join(", ");
                Flaw::new(0, format!("there is no column {column:?} for keys; the columns are {known}"))
            })?),
        };
        let names = fields.into_iter().map(str::to_owned).collect();
        Ok(Self { names, key, infer })
    }

    /// Returns whether there is only one column, so that a row of blanks is a value.
    pub fn is_single(&self) -> bool {
        self.names.len() == 1
    }

    /// Returns the index of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|its| its == name)
    }

    /// Lists all names for a message.
    pub fn list(&self) -> String {
        self.names.join(", ")
    }

    /// Returns the fields of a row, one per column.
    pub fn fields<'d>(&self, decoder: &'d mut Decoder, row: &[u8]) -> Result<Vec<&'d str>, Flaw> {
        let fields = decoder.fields(row)?;
        if fields.len() != self.names.len() {
            let first_odd = field_start(row, fields.len().min(self.names.len()));
            let why = format!(
                "this row has {}, the header names {}",
                counted(fields.len(), "field"),
                counted(self.names.len(), "column")
            );
            return Err(Flaw::new(first_odd, why));
        }
        Ok(fields)
    }

    /// Returns the row as a JSON object, and its key.
    pub fn read(&self, decoder: &mut Decoder, row: &[u8]) -> Result<(String, Option<String>), Flaw> {
        let fields = self.fields(decoder, row)?;
        let key = match self.key {
            Some(index) if fields[index].is_empty() => {
                let why = format!("the key column {:?} is empty", self.names[index]);
                return Err(Flaw::new(field_start(row, index), why));
            }
            Some(index) => Some(fields[index].to_owned()),
            None => None,
        };
        let object = self.object(&fields).map_err(|e| Flaw::new(0, e.to_string()))?;
        Ok((object, key))
    }

    fn object(&self, fields: &[&str]) -> serde_json::Result<String> {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::new(&mut json);
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (name, &field) in self.names.iter().zip(fields) {
            match inferred(field).filter(|_| self.infer) {
                Some(value) => map.serialize_entry(name, value)?,
                None => map.serialize_entry(name, field)?,
            }
        }
        map.end()?;
        String::from_utf8(json).map_err(serde::ser::Error::custom)
    }
}

/// Returns the field as a JSON number or boolean, exactly as written, if it is one.
fn inferred(field: &str) -> Option<&RawValue> {
    let literal = matches!(field, "true" | "false");
    let number =
        field.ends_with(|c: char| c.is_ascii_digit()) && serde_json::from_str::<Number>(field).is_ok();
    if literal || (number && !field.starts_with(char::is_whitespace)) {
        serde_json::from_str(field).ok()
    } else {
        None
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the byte offset at which a field begins in the record; the record's length if it has fewer fields.
pub fn field_start(record: &[u8], index: usize) -> usize {
    let mut quoted = false;
    let mut commas = 0;
    if index == 0 {
        return 0;
    }
    for (at, &byte) in record.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                commas += 1;
                if commas == index {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    record.trim_ascii_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(header: &str, row: &str, infer: bool) -> Result<(String, Option<String>), Flaw> {
        let columns = Columns::new(header.as_bytes(), None, infer)?;
        columns.read(&mut Decoder::new(), row.as_bytes())
    }

    #[test]
    fn a_row_becomes_an_object_in_the_order_of_its_columns() {
        let (json, _) = row("b,a\r\n", "x,\"y \"\"z\"\"\n1\"\r\n", false).unwrap();
        assert_eq!(json, r#"{"b":"x","a":"y \"z\"\n1"}"#);
        assert_eq!(row("a,b", "1,", false).unwrap().0, r#"{"a":"1","b":""}"#);
        assert_eq!(row("a", "\"\"", false).unwrap().0, r#"{"a":""}"#);
    }

    #[test]
    fn a_mark_that_looks_like_that_of_a_file_stays_in_a_row() {
        assert_eq!(
            row("a,b", "\u{feff}x,\u{feff}y\n", false).unwrap().0,
            "{\"a\":\"\u{feff}x\",\"b\":\"\u{feff}y\"}"
        );
        assert_eq!(row("a", "\u{feff}\n", false).unwrap().0, "{\"a\":\"\u{feff}\"}");
    }

    #[test]
    fn values_are_inferred_only_when_they_are_json_as_written() {
        let (json, _) = row("a,b,c,d,e,f", "1.10,007,true,-2e3, 4,TRUE", true).unwrap();
        assert_eq!(json, r#"{"a":1.10,"b":"007","c":true,"d":-2e3,"e":" 4","f":"TRUE"}"#);
    }

    #[test]
    fn a_wrong_number_of_fields_is_told_where_it_shows() {
        let flaw = row("a,b", "1,\"2,\",3\n", false).unwrap_err();
        assert_eq!(flaw, Flaw::new(7, "this row has 3 fields, the header names 2 columns"));
        assert_eq!(row("a,b", "1\n", false).unwrap_err().offset, 1);
    }

    #[test]
    fn a_header_names_each_column_once() {
        assert_eq!(row("a,a", "", false).unwrap_err().offset, 2);
        assert_eq!(row("a,,b", "", false).unwrap_err().offset, 2);
        let missing = Columns::new(b"a,b", Some("id"), false).err().unwrap();
        assert!(missing.why.contains("the columns are a, b"));
    }

    #[test]
    fn quotes_tell_where_a_record_ends_and_what_is_wrong_with_it() {
        let follow = |lines: &[&str]| {
            let mut quotes = Quotes::new();
            lines.iter().map(|line| quotes.follow(line.as_bytes()).map_err(|f| f.offset)).collect::<Vec<_>>()
        };
        assert_eq!(follow(&["a,\"b\n", "c\"\"\n", "\",d\n"]), [Ok(false), Ok(false), Ok(true)]);
        assert_eq!(follow(&["5\" pipe\n"]), [Err(1)]);
        assert_eq!(follow(&["\"a\"b\n"]), [Err(3)]);
        assert_eq!(
            follow(&["\"a\n", "\"b\",c\n"]),
            [Ok(false), Err(0)],
            "the quote that opens is the stray one"
        );
    }
}
