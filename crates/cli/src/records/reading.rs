//! Iteration over the records of a file, with conversion of each record.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::Format;
use super::bad_lines::BadLines;
use super::bad_record::{BadRecord, Flaw};
use super::progress::Bar;
use super::record::{Next, Record, RecordReader};
use super::source::Source;

/// The number of bad lines that are listed in an error message.
const TOLD_MAX: usize = 5;

/// Words for messages about a file.
pub(crate) struct Words {
    /// The noun for its records, for example `jobs`.
    pub(crate) items: &'static str,
    /// The participle for what happens to them, for example `enqueued`.
    pub(crate) done: &'static str,
    /// What `--skip-bad` does with the good records, for example `enqueue the others`.
    pub(crate) others: &'static str,
}

/// The conversion of records to values.
pub(crate) trait Shape {
    /// The value of a record.
    type Made;
    const WORDS: Words;

    /// Reads the header of a CSV file.
    fn header(&mut self, header: &[u8]) -> Result<(), Flaw>;

    /// Returns whether a CSV file has only one column, so that a row of blanks is a value.
    fn is_single(&self) -> bool;

    /// Converts a CSV row after the header, or a JSON line.
    fn make(&mut self, text: &[u8]) -> Result<Self::Made, Flaw>;
}

/// An iterator over the records of a file.
pub(crate) struct Records<'a, S> {
    source: &'a Source,
    shape: S,
    reader: RecordReader<BufReader<&'a File>>,
    record: Record,
    /// The byte range of the CSV header.
    header: Option<Range<u64>>,
}

/// The result of reading the next record.
pub(crate) enum Made<T> {
    /// The converted record, and the line in which it begins.
    Good(T, u64),
    Bad(BadRecord),
    End,
}

impl<'a, S: Shape> Records<'a, S> {
    /// Opens the file and reads the CSV header, if there is one.
    pub(crate) fn open(source: &'a Source, shape: S) -> Result<Self> {
        let reader = source.records().with_context(|| format!("cannot read {}", source.name))?;
        let mut records = Self { source, shape, reader, record: Record::default(), header: None };
        if source.format == Format::Csv {
            records.read_header()?;
        }
        Ok(records)
    }

    /// Returns the records from the start, and the file for bad lines. Without such a file, all records are checked first and none may be
    /// bad. `from` is the input file itself, which must not be overwritten.
    pub(crate) fn looked_through(
        mut self,
        skip_bad: Option<&Path>,
        from: &Path,
    ) -> Result<(Self, Option<BadLines>)> {
        if let Some(path) = skip_bad {
            return Ok((self, Some(BadLines::create(path, from)?)));
        }
        check(&mut self)?;
        Ok((Self::open(self.source, self.shape)?, None))
    }

    /// Returns the number of bytes read.
    pub(crate) const fn position(&self) -> u64 {
        self.reader.position()
    }

    fn read_header(&mut self) -> Result<()> {
        let name = &self.source.name;
        let bad = match self.next_record()? {
            Next::End => {
                return Err(anyhow!("{name} is empty; the first row of a CSV file names its columns"));
            }
            Next::Bad(bad) => bad,
            Next::Record => match self.shape.header(&self.record.text) {
                Ok(()) => {
                    self.header = Some(self.record.bytes.clone());
                    return Ok(());
                }
                Err(flaw) => self.bad(flaw),
            },
        };
        Err(anyhow!("{name}, {bad}"))
    }

    pub(crate) fn next(&mut self) -> Result<Made<S::Made>> {
        Ok(match self.next_record()? {
            Next::End => Made::End,
            Next::Bad(bad) => Made::Bad(bad),
            Next::Record => match self.shape.make(&self.record.text) {
                Ok(made) => Made::Good(made, self.record.line),
                Err(flaw) => Made::Bad(self.bad(flaw)),
            },
        })
    }

    fn next_record(&mut self) -> Result<Next> {
        loop {
            let next = self.reader.next(&mut self.record);
            let next = next.with_context(|| format!("cannot read {}", self.source.name))?;
            let blank = matches!(next, Next::Record) && self.record.text.trim_ascii().is_empty();
            // A blank line is a row only in a CSV file with a single column, after the header.
            if !blank || (self.header.is_some() && self.shape.is_single()) {
                return Ok(next);
            }
        }
    }

    /// Handles a bad record of the second pass: appends it to the file for bad lines, if there is one.
    pub(crate) fn set_aside(&mut self, bad: &BadRecord, bad_lines: Option<&mut BadLines>) -> Result<()> {
        match bad_lines {
            Some(bad_lines) => bad_lines.add(bad, self.header.as_ref(), &mut self.reader),
            // The first pass found no bad line, so the file has changed since then.
            None => Err(anyhow!("{}, {bad}", self.source.name)),
        }
    }

    fn bad(&self, flaw: Flaw) -> BadRecord {
        BadRecord::new(&self.record.text, self.record.line, self.record.bytes.clone(), flaw)
    }
}

/// Reads the whole file without using its records, and fails if any line is bad. Returns the number of good records.
fn check<S: Shape>(records: &mut Records<'_, S>) -> Result<u64> {
    let Words { items, done, others } = S::WORDS;
    let bar = Bar::new("checking", items, records.source.bytes);
    let mut told = String::new();
    let (mut good, mut bad, mut bad_records, mut told_lines) = (0_u64, 0_u64, 0_usize, 0_u64);
    loop {
        match records.next()? {
            Made::End => break,
            Made::Good(..) => good += 1,
            Made::Bad(record) => {
                bad += record.lines;
                bad_records += 1;
                if bad_records <= TOLD_MAX {
                    told_lines = bad;
                    let _ = write!(told, "\n  {}, {record}", records.source.name);
                }
            }
        }
        if (good + bad).is_multiple_of(1000) {
            bar.reached(records.position(), good);
        }
    }
    drop(bar);
    let hint = format!("\nFix them, or add --skip-bad BADFILE to write them to a file and {others}.");
    match bad {
        0 => Ok(good),
        1 => Err(anyhow!("a line is bad, so nothing was {done}{told}{hint}")),
        _ => {
            if bad_records > TOLD_MAX {
                let _ = write!(told, "\n  and {} more", bad - told_lines);
            }
            Err(anyhow!("{bad} lines are bad, so nothing was {done}{told}{hint}"))
        }
    }
}
