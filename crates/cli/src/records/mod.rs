//! Files of records on the command line: opened or buffered, read twice, with a progress bar and a file for bad lines.

mod bad_lines;
mod progress;
mod reading;
mod source;

pub(crate) use milepost_records::{Flaw, Format, Made, Shape, csv, jsonl};

pub(crate) use self::bad_lines::BadLines;
pub(crate) use self::progress::Bar;
pub(crate) use self::reading::{Records, Worded, Words};
pub(crate) use self::source::Source;
