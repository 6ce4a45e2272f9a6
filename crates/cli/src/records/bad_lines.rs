//! The file to which `--skip-bad` writes bad lines.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::bad_record::BadRecord;
use super::record::RecordReader;
use crate::process_secrets::warn_of_readers;

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

/// Returns whether a path is a SQLite database, or a file that SQLite keeps beside one.
fn is_of_database(path: &Path) -> bool {
    let is_database = |path: &Path| {
        let mut begin = [0; 16];
        File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && &begin == b"SQLite format 3\0"
    };
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.as_os_str().as_bytes();
    let beside = [&b"-wal"[..], b"-shm", b"-journal"].into_iter().filter_map(|end| name.strip_suffix(end));
    is_database(&path) || beside.into_iter().any(|name| is_database(Path::new(OsStr::from_bytes(name))))
}

impl BadLines {
    /// Creates the file, or truncates it.
    pub(crate) fn create(path: &Path, source: &Path) -> Result<Self> {
        let stdin = Path::new("/dev/stdin");
        if is_same_file(path, if source == Path::new("-") { stdin } else { source }) {
            bail!("--skip-bad would overwrite {}, from which the records come", path.display());
        }
        if is_of_database(path) {
            bail!("--skip-bad would overwrite {}, which belongs to a SQLite database", path.display());
        }
        // Records can be confidential.
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if file.metadata().is_ok_and(|file| file.is_file()) {
            warn_of_readers(path);
        }
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), count: 0 })
    }

    /// Writes a record. `header` is the byte range of the CSV header: it is written first, so that the file can be used as input once its
    /// lines are corrected.
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

    /// Returns the number of lines written.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Flushes all lines to the file.
    pub(crate) fn close(mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
