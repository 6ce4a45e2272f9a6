//! Parsers of this crate for the fuzz targets of the workspace. Not part of the public API.

use std::io::{self, Cursor};
use std::ops::Range;
use std::path::Path;

use milepost_core::dag::checked::Dag;
use milepost_records::{Next, Record, RecordReader};

use crate::batch::file;
use crate::config;
use crate::records;
use crate::records::csv::{Columns, Decoder};
use crate::records::jsonl;

/// A fault of a file.
#[derive(Debug)]
pub struct Fault {
    /// Line and column, both counted from 1, if the position is known.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
    /// How to fix it; empty if `what` contains it.
    pub remedy: String,
}

/// The store that a configuration names, without its password.
pub type NamedStore = Option<String>;

/// Parses a configuration in `folder`, in which no environment variable is set.
///
/// # Errors
/// The faults of the text.
pub fn configuration(text: &str, folder: &Path) -> Result<NamedStore, Vec<Fault>> {
    let config = config::parse(text, folder, None, |_| None).map_err(faults)?;
    Ok(config.store.map(|store| store.to_string()))
}

/// Parses only the store of a configuration in `folder`, in which no environment variable is set.
///
/// # Errors
/// The faults of this setting.
pub fn store_of_configuration(text: &str, folder: &Path) -> Result<NamedStore, Vec<Fault>> {
    let store = config::parse_store(text, folder, |_| None).map_err(faults)?;
    Ok(store.map(|store| store.to_string()))
}

fn faults(faults: Vec<config::Fault>) -> Vec<Fault> {
    let fault = |fault: config::Fault| Fault {
        place: Some((fault.line, fault.column)),
        what: fault.what,
        remedy: fault.remedy,
    };
    faults.into_iter().map(fault).collect()
}

/// The format of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DagFormat {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// Parses and checks the definition of a DAG.
///
/// # Errors
/// The faults of the text.
pub fn definition(format: DagFormat, text: &str) -> Result<Dag, Vec<Fault>> {
    let format = match format {
        DagFormat::Toml => file::Format::Toml,
        DagFormat::Yaml => file::Format::Yaml,
        DagFormat::Json => file::Format::Json,
    };
    let fault = |fault: file::Fault| Fault { place: fault.place, what: fault.what, remedy: String::new() };
    file::check(format, text).map_err(|faults| faults.into_iter().map(fault).collect())
}

/// A record of a file, or a bad record.
#[derive(Debug)]
pub struct Found {
    /// The bytes of the file that it covers.
    pub bytes: Range<u64>,
    /// Its first line, or that of the error; counted from 1.
    pub line: u64,
    /// The payload, as JSON, or the reason why the record is bad.
    pub read: Result<String, String>,
}

/// Reads the rows of a CSV file as payloads of jobs. The first element is the header, without a payload if it is valid.
///
/// # Errors
/// None: the file is in memory.
pub fn csv(file: &[u8], infer: bool) -> io::Result<Vec<Found>> {
    let (mut decoder, mut columns) = (Decoder::new(), None);
    read(file, records::Format::Csv, |text| match &columns {
        Some(columns) => Columns::read(columns, &mut decoder, text).map(|(payload, _)| payload),
        None => {
            columns = Some(Columns::new(text, None, infer)?);
            Ok(String::new())
        }
    })
}

/// Reads the lines of a JSONL file as payloads of jobs.
///
/// # Errors
/// None: the file is in memory.
pub fn json_lines(file: &[u8]) -> io::Result<Vec<Found>> {
    read(file, records::Format::Jsonl, |text| jsonl::read(text, None).map(|(payload, _)| payload.to_owned()))
}

fn read(
    file: &[u8],
    format: records::Format,
    mut convert: impl FnMut(&[u8]) -> Result<String, records::Flaw>,
) -> io::Result<Vec<Found>> {
    let mut reader = RecordReader::new(Cursor::new(file), format)?;
    let (mut record, mut found) = (Record::default(), Vec::new());
    loop {
        match reader.next(&mut record)? {
            Next::End => return Ok(found),
            Next::Bad(bad) => {
                found.push(Found { bytes: bad.bytes.clone(), line: bad.line, read: Err(bad.to_string()) });
            }
            Next::Record => {
                let (bytes, line) = (record.bytes.clone(), record.line);
                let read = convert(&record.text).map_err(|flaw| flaw.why);
                found.push(Found { bytes, line, read });
            }
        }
    }
}
