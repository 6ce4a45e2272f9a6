//! Text files named by options, read up to a size limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest configuration, and the largest file with a payload or an input: more than any store accepts, including blanks and all digits of numbers.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The largest file with a DAG definition.
pub(crate) const DAG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads a text file of at most `bytes_max` bytes. It never reads more, because a path may lead to an endless device.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_read_up_to_the_limit() {
        let error = read_text(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000 bytes");
    }

    #[test]
    fn a_file_of_the_limit_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x".repeat(1000)).unwrap();
        assert_eq!(read_text(file.path(), 1000).unwrap().len(), 1000);
        assert!(read_text(file.path(), 999).is_err());
    }
}
