//! Sink: JSON lines in a file or on the standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;

use super::setting::{self, InvalidSink};
use super::{Delivery, Sink, SinkDown};

/// Block size when the last line is searched backwards from the end of a file.
const BLOCK_BYTES: u64 = 64 * 1024;
/// The start of each line: the first member of an event.
const FIRST_BYTES: &[u8] = br#"{"event_id":""#;

/// One JSON object per line. An acknowledgement means that the line is on the disk (fsync) or, on the standard output, that it was written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonlConfig {
    /// The file to append to. It is created if it does not exist. The default is the standard output.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// The maximum length of a line in bytes. Events with longer lines are not written and count as unacceptable. The default is 16 MiB.
    #[serde(default = "line_bytes_max_default")]
    pub line_bytes_max: usize,
    /// The time limit of a call. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

const fn line_bytes_max_default() -> usize {
    16 * 1024 * 1024
}

/// Writes JSON lines.
#[derive(Debug)]
pub(super) struct Jsonl {
    place: String,
    line_bytes_max: usize,
    timeout: Duration,
    output: Arc<Mutex<Output>>,
}

#[derive(Debug)]
enum Output {
    Stdout,
    /// Opened when there is something to write, and again after every failure.
    File {
        path: PathBuf,
        file: Option<File>,
    },
}

impl Jsonl {
    pub(super) fn open(config: &JsonlConfig) -> Result<Self, InvalidSink> {
        if config.line_bytes_max == 0 {
            return Err(InvalidSink::new("line_bytes_max", "it must be at least 1 byte"));
        }
        if config.path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(InvalidSink::new(
                "path",
                "it is empty; name a file, or omit the setting to write to the standard output",
            ));
        }
        let place = config
            .path
            .as_ref()
            .map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        let output = match config.path.clone() {
            None => Output::Stdout,
            Some(path) => Output::File { path, file: None },
        };
        Ok(Self {
            place,
            line_bytes_max: config.line_bytes_max,
            timeout: setting::timeout(config.timeout_ms)?,
            output: Arc::new(Mutex::new(output)),
        })
    }

    /// Returns the lines of all events that fit, and the deliveries to report after the lines have been written.
    fn lines(&self, events: &[Event]) -> (Vec<u8>, Vec<Delivery>) {
        let mut lines = Vec::new();
        let deliveries = events.iter().map(|event| {
            let began = lines.len();
            if let Err(error) = serde_json::to_writer(&mut lines, event) {
                lines.truncate(began);
                return Delivery::Unacceptable { why: format!("it cannot be written as JSON: {error}") };
            }
            // A payload may be JSON of several lines. Between tokens, line breaks have no meaning; within strings there are none.
            for byte in lines[began..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
                *byte = b' ';
            }
            let bytes = lines.len() - began;
            if bytes > self.line_bytes_max {
                lines.truncate(began);
                let max = self.line_bytes_max;
                return Delivery::Unacceptable {
                    why: format!("its line has {bytes} bytes; `line_bytes_max` is {max}"),
                };
            }
            lines.push(b'\n');
            Delivery::Acknowledged
        });
        let deliveries = deliveries.collect();
        (lines, deliveries)
    }
}

#[async_trait]
impl Sink for Jsonl {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let (lines, deliveries) = self.lines(events);
        let output = self.output.clone();
        let writing = tokio::task::spawn_blocking(move || {
            output.lock().unwrap_or_else(PoisonError::into_inner).write(&lines)
        });
        match tokio::time::timeout(self.timeout, writing).await {
            Ok(Ok(Ok(()))) => Ok(deliveries),
            Ok(Ok(Err(error))) => Err(SinkDown::now(&self.place, error.to_string())),
            Ok(Err(_)) => Err(SinkDown::now(&self.place, "the write was interrupted")),
            Err(_) => {
                let why = format!("it was not written within {:?}", self.timeout);
                let late = |delivery| match delivery {
                    Delivery::Acknowledged => Delivery::Unknown { why: why.clone() },
                    other => other,
                };
                Ok(deliveries.into_iter().map(late).collect())
            }
        }
    }
}

impl Output {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File { path, file } => {
                let mut open = match file.take() {
                    Some(file) if is_at(&file, path) => file,
                    _ => open_whole(path)?,
                };
                open.write_all(lines)?;
                open.sync_data()?;
                // After a failure the file stays closed. It is repaired when it is opened again.
                *file = Some(open);
                Ok(())
            }
        }
    }
}

/// Returns whether the file is still the one at this path: it may have been removed, or renamed to begin a new one.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), path.metadata()) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

/// Opens a file for appending and removes an incomplete last line.
fn open_whole(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // Two processes that truncate and append would destroy each other's lines.
    file.try_lock().map_err(|_| io::Error::other("another process writes to it"))?;
    let bytes = file.metadata()?.len();
    let whole = whole_bytes(&mut file, bytes)?;
    check_own(&mut file, bytes)?;
    if whole < bytes {
        tracing::warn!(path = %path.display(), cut_bytes = bytes - whole, "removing the incomplete last line");
        file.set_len(whole)?;
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // Ensures that the directory entry of a new file survives a power failure.
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// Refuses a file that this sink has not written: it must be empty, or begin with the start of an event.
fn check_own(file: &mut File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let start = &FIRST_BYTES[..FIRST_BYTES.len().min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    let mut found = vec![0; start.len()];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut found)?;
    if found == start {
        return Ok(());
    }
    Err(io::Error::other(
        "its first line is not an event, so another program has written the file; name a new file",
    ))
}

/// Returns the number of bytes up to and including the last line break.
fn whole_bytes(file: &mut File, bytes: u64) -> io::Result<u64> {
    let (mut end, mut block) = (bytes, Vec::new());
    while end > 0 {
        let begin = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        block.clear();
        Read::by_ref(file).take(end - begin).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}
