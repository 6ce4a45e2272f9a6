//! Files of records: CSV rows and JSON lines, read one by one in bounded memory, each with its position.

mod bad_lines;
mod bad_record;
pub(crate) mod csv;
pub(crate) mod jsonl;
mod progress;
mod reading;
pub(crate) mod record;
mod source;

use clap::ValueEnum;

pub(crate) use self::bad_lines::BadLines;
pub(crate) use self::bad_record::Flaw;
pub(crate) use self::progress::Bar;
pub(crate) use self::reading::{Made, Records, Shape, Words};
pub(crate) use self::source::Source;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Rows of values; the first row contains the column names
    Csv,
    /// One JSON value per line
    Jsonl,
}
