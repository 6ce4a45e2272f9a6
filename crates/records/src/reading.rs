//! Iteration over the records of a file, with conversion of each record.

use std::io::{self, BufRead, Seek, Write};
use std::ops::Range;

use thiserror::Error;

use crate::Format;
use crate::bad_record::{BadRecord, Flaw};
use crate::record::{Next, Record, RecordReader};

/// The conversion of records to values.
pub trait Shape {
    /// The value of a record.
    type Made;

    /// Reads the header of a CSV file.
    ///
    /// # Errors
    /// The flaw of the header.
    fn header(&mut self, header: &[u8]) -> Result<(), Flaw>;

    /// Returns whether a CSV file has only one column, so that a row of blanks is a value.
    fn is_single(&self) -> bool;

    /// Converts a CSV row after the header, or a JSON line.
    ///
    /// # Errors
    /// The flaw of the record.
    fn make(&mut self, text: &[u8]) -> Result<Self::Made, Flaw>;
}

/// An iterator over the records of a file.
pub struct Records<R, S> {
    shape: S,
    reader: RecordReader<R>,
    record: Record,
    /// The byte range of the CSV header.
    header: Option<Range<u64>>,
}

/// The result of reading the next record.
#[derive(Debug)]
pub enum Made<T> {
    /// The converted record, and the line in which it begins.
    Good(T, u64),
    /// A bad record.
    Bad(BadRecord),
    /// The end of the file.
    End,
}

/// A file of which no record can be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The input failed.
    #[error("it cannot be read: {0}")]
    Input(#[from] io::Error),
    /// A CSV file without a header.
    #[error("it is empty; the first row of a CSV file names its columns")]
    Empty,
    /// The header of a CSV file is bad.
    #[error("{0}")]
    Header(BadRecord),
}

impl<R: BufRead + Seek, S: Shape> Records<R, S> {
    /// Begins at the start of the input, and reads the header of a CSV file.
    ///
    /// # Errors
    /// [`Unreadable`] with the reason.
    pub fn open(input: R, format: Format, shape: S) -> Result<Self, Unreadable> {
        let reader = RecordReader::new(input, format)?;
        let mut records = Self { shape, reader, record: Record::default(), header: None };
        if format == Format::Csv {
            records.read_header()?;
        }
        Ok(records)
    }

    fn read_header(&mut self) -> Result<(), Unreadable> {
        match self.next_record()? {
            Next::End => Err(Unreadable::Empty),
            Next::Bad(bad) => Err(Unreadable::Header(bad)),
            Next::Record => {
                self.shape.header(&self.record.text).map_err(|flaw| Unreadable::Header(self.bad(flaw)))?;
                self.header = Some(self.record.bytes.clone());
                Ok(())
            }
        }
    }

    /// Reads and converts the next record.
    ///
    /// # Errors
    /// If the input fails.
    pub fn read(&mut self) -> io::Result<Made<S::Made>> {
        Ok(match self.next_record()? {
            Next::End => Made::End,
            Next::Bad(bad) => Made::Bad(bad),
            Next::Record => match self.shape.make(&self.record.text) {
                Ok(made) => Made::Good(made, self.record.line),
                Err(flaw) => Made::Bad(self.bad(flaw)),
            },
        })
    }

    fn next_record(&mut self) -> io::Result<Next> {
        loop {
            let next = self.reader.next(&mut self.record)?;
            let blank = matches!(next, Next::Record) && self.record.text.trim_ascii().is_empty();
            // A blank line is a row only in a CSV file with a single column, after the header.
            if !blank || (self.header.is_some() && self.shape.is_single()) {
                return Ok(next);
            }
        }
    }

    /// Returns the number of bytes read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Returns the byte range of the CSV header.
    #[must_use]
    pub const fn header(&self) -> Option<&Range<u64>> {
        self.header.as_ref()
    }

    /// Copies a byte range that was read already, unchanged.
    ///
    /// # Errors
    /// If the input or the output fails.
    pub fn copy(&mut self, bytes: Range<u64>, to: &mut impl Write) -> io::Result<()> {
        self.reader.copy(bytes, to)
    }

    /// Returns the conversion, to begin again.
    pub fn into_shape(self) -> S {
        self.shape
    }

    fn bad(&self, flaw: Flaw) -> BadRecord {
        BadRecord::new(&self.record.text, self.record.line, self.record.bytes.clone(), flaw)
    }
}
