//! Files of records: CSV rows and JSON lines, read one by one in bounded memory, each with its position.

mod bad_record;
pub mod csv;
pub mod jsonl;
mod reading;
mod record;
pub mod targets;

use std::path::Path;

pub use self::bad_record::{BadRecord, Flaw};
pub use self::reading::{Made, Records, Shape, Unreadable};
pub use self::record::{Next, RECORD_BYTES_MAX, Record, RecordReader};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Format {
    /// Rows of values; the first row contains the column names
    Csv,
    /// One JSON value per line
    Jsonl,
}

impl Format {
    /// Returns the format that a file's name has by its ending: `.csv`, `.jsonl` or `.ndjson`.
    #[must_use]
    pub fn of_name(name: &Path) -> Option<Self> {
        let ending = name.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}
