//! The file that `--skip-bad` sets bad lines aside in.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::place::BadRecord;
use super::record::RecordReader;

/// Bad lines, set aside as they were.
pub(crate) struct BadLines {
    path: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

impl BadLines {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Path, source: &Path) -> Result<Self> {
        let same = matches!((path.canonicalize(), source.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if same {
            bail!("--skip-bad would overwrite {}, from which the records come", path.display());
        }
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), count: 0 })
    }

    /// Sets a record aside. `header` is the CSV header's place: it goes first, so that the file can be
    /// used like the one that it came from once it is mended.
    pub(crate) fn add(
        &mut self,
        bad: &BadRecord,
        header: Option<&std::ops::Range<u64>>,
        reader: &mut RecordReader<BufReader<&File>>,
    ) -> Result<()> {
        let header = header.filter(|_| self.count == 0).cloned();
        self.count += bad.lines;
        let file = &mut self.file;
        header
            .into_iter()
            .chain([bad.bytes.clone()])
            .try_for_each(|bytes| reader.copy(bytes, file))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// How many lines there are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Sees that they are all in the file.
    pub(crate) fn close(mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
