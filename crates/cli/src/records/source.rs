//! The file from which records are read.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use milepost_cli_support::output::{self, is_null};

use super::Format;

/// A file that can be read twice.
pub(crate) struct Source {
    /// The name used in messages.
    pub(crate) name: String,
    pub(crate) format: Format,
    /// The size in bytes.
    pub(crate) bytes: u64,
    file: File,
}

impl Source {
    /// Opens the file, or copies the data of a pipe to a temporary file.
    pub(crate) fn open(from: &Path, format: Option<Format>) -> Result<Self> {
        if from.as_os_str() == "-" {
            if io::stdin().is_terminal() {
                output::note("reading records from the terminal, one per line; Ctrl-D ends the input");
            }
            let name = "standard input".to_owned();
            let about = File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()?;
            if !io::stdin().is_terminal() {
                refuse_device(&name, &about)?;
            }
            return Self::kept(name, format.unwrap_or(Format::Jsonl), &mut io::stdin().lock());
        }
        let name = from.display().to_string();
        let format = match format {
            Some(format) => format,
            None => format_by_name(from)?,
        };
        let context = || format!("cannot read {name}");
        let mut file = File::open(from).with_context(context)?;
        let about = file.metadata().with_context(context)?;
        if about.is_dir() {
            bail!("cannot read {name}: it is a folder");
        }
        if !file.is_terminal() {
            refuse_device(&name, &about)?;
        }
        if !about.is_file() {
            return Self::kept(name, format, &mut file);
        }
        Ok(Self { bytes: about.len(), name, format, file })
    }

    fn kept(name: String, format: Format, input: &mut impl io::Read) -> Result<Self> {
        let mut file = tempfile::tempfile().context("cannot create a temporary file")?;
        let bytes = io::copy(input, &mut file)
            .with_context(|| format!("cannot buffer {name} in a temporary file"))?;
        Ok(Self { name, format, bytes, file })
    }

    /// Returns a reader of its bytes. Only one reader may be in use at a time.
    pub(super) fn reader(&self) -> BufReader<&File> {
        BufReader::with_capacity(256 * 1024, &self.file)
    }
}

/// Refuses devices, which may be endless. Copying one would fill the disk.
fn refuse_device(name: &str, about: &Metadata) -> Result<()> {
    let kind = about.file_type();
    if (kind.is_char_device() || kind.is_block_device()) && !is_null(about) {
        bail!("cannot read {name}: it is a device; give a file or a pipe");
    }
    Ok(())
}

fn format_by_name(path: &Path) -> Result<Format> {
    let Some(format) = Format::of_name(path) else {
        bail!(
            "cannot determine the format of {} from its name; add --format csv or --format jsonl",
            path.display()
        )
    };
    Ok(format)
}
