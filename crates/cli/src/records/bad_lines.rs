//! The file to which `--skip-bad` writes bad lines.

use std::fs::File;
use std::io::{BufRead, BufWriter, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use milepost_records::{BadRecord, Records, Shape};

/// The mode of the file: records can be confidential.
const PRIVATE: u32 = 0o600;

/// Writer for bad lines, which are copied unchanged.
pub(crate) struct BadLines {
    path: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

/// Returns whether two paths refer to the same file, also through links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().map(|data| (data.dev(), data.ino()));
    matches!((file(one), file(other)), (Ok(one), Ok(other)) if one == other)
}

impl BadLines {
    /// Creates the file. An existing one is not overwritten: it can be a configuration, a store, or bad lines that nobody has corrected yet.
    pub(crate) fn create(path: &Path, source: &Path) -> Result<Self> {
        let stdin = Path::new("/dev/stdin");
        if is_same_file(path, if source == Path::new("-") { stdin } else { source }) {
            bail!("--skip-bad would overwrite {}, from which the records come", path.display());
        }
        if path.metadata().is_ok_and(|existing| existing.is_file()) {
            bail!("--skip-bad would overwrite {}; remove it, or give the name of a new file", path.display());
        }
        let mut options = File::options();
        options.write(true).mode(PRIVATE);
        // A pipe or a device is opened; `create_new` refuses a file that another process creates at the same moment.
        let opened = if path.exists() { options.open(path) } else { options.create_new(true).open(path) };
        let file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), count: 0 })
    }

    /// Writes a record of the file. The CSV header is written first, so that the file can be used as input once its lines are corrected.
    pub(crate) fn add<R: BufRead + Seek, S: Shape>(
        &mut self,
        bad: &BadRecord,
        records: &mut Records<R, S>,
    ) -> Result<()> {
        let header = records.header().filter(|_| self.count == 0).cloned();
        self.count += bad.lines;
        let file = &mut self.file;
        header
            .into_iter()
            .chain([bad.bytes.clone()])
            .try_for_each(|bytes| records.copy(bytes, file))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Returns the number of lines written.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Flushes all lines to the file.
    pub(crate) fn close(mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
