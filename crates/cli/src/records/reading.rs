//! The records of a file, one after another, each made into what is wanted of it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::Format;
use super::bad_lines::BadLines;
use super::place::{BadRecord, Flaw};
use super::progress::Bar;
use super::record::{Next, Record, RecordReader};
use super::source::Source;

/// How many bad lines are told one by one.
const TOLD_MAX: usize = 5;

/// How people are told what becomes of a file.
pub(crate) struct Words {
    /// What its records are: `jobs`.
    pub(crate) items: &'static str,
    /// What is done with them: `enqueued`.
    pub(crate) done: &'static str,
    /// What else can be done when some are bad: `enqueue the others`.
    pub(crate) others: &'static str,
}

/// What records are made into.
pub(crate) trait Shape {
    /// What comes of a record.
    type Made;
    const WORDS: Words;

    /// Reads the header of a CSV file.
    fn header(&mut self, header: &[u8]) -> Result<(), Flaw>;

    /// Whether a CSV file has but one column, so that a row of blanks is a value.
    fn is_single(&self) -> bool;

    /// Reads a row behind that header, or a line.
    fn make(&mut self, text: &[u8]) -> Result<Self::Made, Flaw>;
}

/// The records of a file, one after another.
pub(crate) struct Records<'a, S> {
    source: &'a Source,
    shape: S,
    reader: RecordReader<BufReader<&'a File>>,
    record: Record,
    /// Where the header of a CSV file stands.
    header: Option<Range<u64>>,
}

/// What the next record is.
pub(crate) enum Made<T> {
    /// It, and the line in which it begins.
    Good(T, u64),
    Bad(BadRecord),
    End,
}

impl<'a, S: Shape> Records<'a, S> {
    /// Reads the header, if there is one.
    pub(crate) fn open(source: &'a Source, shape: S) -> Result<Self> {
        let reader = source.records().with_context(|| format!("cannot read {}", source.name))?;
        let mut records = Self { source, shape, reader, record: Record::default(), header: None };
        if source.format == Format::Csv {
            records.read_header()?;
        }
        Ok(records)
    }

    /// The same from the start, and where bad lines go; without a place for them, all is read first, and none may be bad.
    /// `from`: the file itself, which is not to be overwritten.
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

    /// How many bytes were read.
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
            // Where there are several columns, or no header yet, a blank line is not meant as a row.
            if !blank || (self.header.is_some() && self.shape.is_single()) {
                return Ok(next);
            }
        }
    }

    /// Deals with a bad record of the second pass: sets it aside where that was asked for.
    pub(crate) fn set_aside(&mut self, bad: &BadRecord, bad_lines: Option<&mut BadLines>) -> Result<()> {
        match bad_lines {
            Some(bad_lines) => bad_lines.add(bad, self.header.as_ref(), &mut self.reader),
            // The first pass found no bad line, so the file has changed since.
            None => Err(anyhow!("{}, {bad}", self.source.name)),
        }
    }

    fn bad(&self, flaw: Flaw) -> BadRecord {
        BadRecord::new(&self.record.text, self.record.line, self.record.bytes.clone(), flaw)
    }
}

/// Reads the whole file, does nothing with it and fails when any line is bad. Answers how many records it has.
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
    let hint = format!("\nMend them, or add --skip-bad BADFILE to set them aside and {others}.");
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
