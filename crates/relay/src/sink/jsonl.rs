//! Events as lines of JSON, in a file or on the standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;

use super::config::{self, InvalidSink};
use super::{Delivery, Sink, SinkDown};

/// How much of a file's end is read at once in search of its last line.
const BLOCK_BYTES: u64 = 64 * 1024;

/// One JSON object a line. An acknowledgement says that the line is on the disk (fsync); on the standard output, that it was written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonlConfig {
    /// The file, which is appended to and made when it is missing. The default is the standard output.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Longer lines are not written; the events are unacceptable. The default is 16 MiB.
    #[serde(default = "line_bytes_max_default")]
    pub line_bytes_max: usize,
    /// How long a call may take. The default is 5000.
    #[serde(default = "config::timeout_default_ms")]
    pub timeout_ms: u64,
}

const fn line_bytes_max_default() -> usize {
    16 * 1024 * 1024
}

/// Writes lines.
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
            return Err(InvalidSink::new("line_bytes_max", "give it at least 1 byte"));
        }
        if config.path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(InvalidSink::new(
                "path",
                "it is empty; name a file, or leave it out for the standard output",
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
            timeout: config::timeout(config.timeout_ms)?,
            output: Arc::new(Mutex::new(output)),
        })
    }

    /// The lines of all events that have one, and what is to be said of each event once these are written.
    fn lines(&self, events: &[Event]) -> (Vec<u8>, Vec<Delivery>) {
        let mut lines = Vec::new();
        let deliveries = events.iter().map(|event| {
            let began = lines.len();
            if let Err(error) = serde_json::to_writer(&mut lines, event) {
                lines.truncate(began);
                return Delivery::Unacceptable { why: format!("it cannot be written as JSON: {error}") };
            }
            // A payload may be JSON in many lines; between its tokens line breaks mean nothing, and within strings there are none.
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
            Ok(Err(_)) => Err(SinkDown::now(&self.place, "the writing was broken off")),
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
                    Some(file) => file,
                    None => open_whole(path)?,
                };
                open.write_all(lines)?;
                open.sync_data()?;
                // After a failure it stays closed, and is repaired when it is opened again.
                *file = Some(open);
                Ok(())
            }
        }
    }
}

/// Opens a file at its end and cuts off a last line that was not written to its end.
fn open_whole(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // Two that cut and append would destroy each other's lines.
    file.try_lock().map_err(|_| io::Error::other("another process writes to it"))?;
    let bytes = file.metadata()?.len();
    let whole = whole_bytes(&mut file, bytes)?;
    if whole < bytes {
        tracing::warn!(path = %path.display(), cut_bytes = bytes - whole, "the last line was not whole and is cut off");
        file.set_len(whole)?;
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // So that a new file has its name after a power cut, too.
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// How many bytes there are up to the last line break.
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
