//! Files of records: CSV rows and JSON lines, for `enqueue --from` and bulk jobs.

use milepost_cli::fuzzing::{self, Found};
use serde_json::Value;

use crate::check;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a CSV file. Its fields are those that a decoder of the complete file finds.
///
/// # Panics
/// A property does not hold.
pub fn csv(input: &[u8]) {
    for infer in [false, true] {
        let found = fuzzing::csv(input, infer).expect("the file is in memory");
        check_found(input, &found);
        let is_good = found.iter().all(|found| found.read.is_ok());
        if !is_good || infer {
            continue;
        }
        let rows: Vec<Vec<String>> = found.iter().skip(1).map(values).collect();
        let expected: Vec<_> = decoded(input).into_iter().skip(1).collect();
        assert_eq!(rows, expected, "the fields differ from those of the decoder");
    }
}

/// Reads a file of JSON lines. Each good record is the JSON of its line.
///
/// # Panics
/// A property does not hold.
pub fn json_lines(input: &[u8]) {
    let found = fuzzing::json_lines(input).expect("the file is in memory");
    check_found(input, &found);
    for Found { bytes, read, .. } in &found {
        let (from, to) = (position(bytes.start), position(bytes.end));
        let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(&input[from..to]).is_ok();
        assert_eq!(is_json, read.is_ok(), "{read:?} of {:?}", String::from_utf8_lossy(&input[from..to]));
        if let Ok(text) = read {
            assert!(!text.contains('\n'));
        }
    }
}

/// Checks that records are in the order of the file, do not overlap, and omit nothing but blank lines.
fn check_found(input: &[u8], found: &[Found]) {
    let mut end = if input.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut line = 0;
    for record in found {
        let (from, to) = (position(record.bytes.start), position(record.bytes.end));
        assert!(end <= from && from < to && to <= input.len(), "a record has the bytes {from} to {to}");
        assert!(input[end..from].trim_ascii().is_empty(), "bytes {end} to {from} were omitted");
        // The error of a bad record can be in a later line than the record.
        if record.read.is_ok() {
            assert!(record.line > line, "line {} follows line {line}", record.line);
            line = record.line;
        }
        end = to;
        match &record.read {
            Ok(payload) if payload.is_empty() => {}
            Ok(payload) => {
                serde_json::from_str::<serde::de::IgnoredAny>(payload).expect("a payload is JSON");
            }
            Err(why) => check::message(why),
        }
    }
    assert!(input[end..].trim_ascii().is_empty(), "the end of the file was omitted");
}

/// Returns the values of a row, in the order of its columns.
fn values(found: &Found) -> Vec<String> {
    /// The members of an object in their order, which a map would lose.
    struct Members(Vec<String>);

    impl<'de> serde::Deserialize<'de> for Members {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;

            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Members;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                    let mut values = Vec::new();
                    while let Some((_, value)) = map.next_entry::<Value, String>()? {
                        values.push(value);
                    }
                    Ok(Members(values))
                }
            }

            deserializer.deserialize_map(Visitor)
        }
    }

    let text = found.read.as_ref().expect("the row is good");
    let Members(values) = serde_json::from_str(text).expect("a row is an object of texts");
    values
}

/// Decodes a complete CSV file with the library.
fn decoded(input: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let rows = reader.records().map(|row| row.expect("the file is UTF-8"));
    rows.map(|row| row.iter().map(str::to_owned).collect()).collect()
}

fn position(bytes: u64) -> usize {
    usize::try_from(bytes).expect("the file is in memory")
}
