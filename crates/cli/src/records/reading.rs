//! Iteration over the records of a file, with messages that name it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use milepost_records::{BadRecord, Made, Shape, Unreadable};

use super::bad_lines::BadLines;
use super::progress::Bar;
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

/// A conversion of records, with the words for its messages.
pub(crate) trait Worded: Shape {
    const WORDS: Words;
}

/// An iterator over the records of a file.
pub(crate) struct Records<'a, S> {
    source: &'a Source,
    records: milepost_records::Records<BufReader<&'a File>, S>,
}

impl<'a, S: Worded> Records<'a, S> {
    /// Opens the file and reads the CSV header, if there is one.
    pub(crate) fn open(source: &'a Source, shape: S) -> Result<Self> {
        let name = &source.name;
        let records = milepost_records::Records::open(source.reader(), source.format, shape);
        let records = records.map_err(|unreadable| match unreadable {
            Unreadable::Input(error) => anyhow!(error).context(format!("cannot read {name}")),
            Unreadable::Empty => anyhow!("{name} is empty; the first row of a CSV file names its columns"),
            Unreadable::Header(bad) => anyhow!("{name}, {bad}"),
        })?;
        Ok(Self { source, records })
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
        Ok((Self::open(self.source, self.records.into_shape())?, None))
    }

    /// Returns the number of bytes read.
    pub(crate) const fn position(&self) -> u64 {
        self.records.position()
    }

    pub(crate) fn next(&mut self) -> Result<Made<S::Made>> {
        self.records.read().with_context(|| format!("cannot read {}", self.source.name))
    }

    /// Handles a bad record of the second pass: appends it to the file for bad lines, if there is one.
    pub(crate) fn set_aside(&mut self, bad: &BadRecord, bad_lines: Option<&mut BadLines>) -> Result<()> {
        match bad_lines {
            Some(bad_lines) => bad_lines.add(bad, &mut self.records),
            // The first pass found no bad line, so the file has changed since then.
            None => Err(anyhow!("{}, {bad}", self.source.name)),
        }
    }
}

/// Reads the whole file without using its records, and fails if any line is bad. Returns the number of good records.
fn check<S: Worded>(records: &mut Records<'_, S>) -> Result<u64> {
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
