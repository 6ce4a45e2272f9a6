//! The lines of a `jsonl` sink as a source of events. Brokers without a source in `milepost_relay` can be read in the same way.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use milepost_relay::consumer::{Incoming, Malformed, Receipt, Source, SourceDown};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncSeekExt, BufReader};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// The polling interval of the file.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reads the file from its beginning and continues with appended lines. The inbox detects events that were processed before.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    read_to: u64,
    /// Lines to be delivered again.
    again: (UnboundedSender<String>, UnboundedReceiver<String>),
}

impl Lines {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read_to: 0, again: mpsc::unbounded_channel() }
    }

    /// Returns the next complete line, if there is one.
    async fn line(&mut self) -> std::io::Result<Option<String>> {
        if let Ok(line) = self.again.1.try_recv() {
            return Ok(Some(line));
        }
        let mut file = match File::open(&self.path).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => BufReader::new(opened?),
        };
        file.seek(SeekFrom::Start(self.read_to)).await?;
        let mut line = String::new();
        let bytes = file.read_line(&mut line).await?;
        // A line without a line ending is still being written.
        if !line.ends_with('\n') {
            return Ok(None);
        }
        self.read_to += bytes as u64;
        Ok(Some(line))
    }
}

#[async_trait]
impl Source for Lines {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        let place = self.path.display().to_string();
        loop {
            match self.line().await {
                Ok(Some(text)) => {
                    let malformed = |error: serde_json::Error| Malformed {
                        place,
                        why: error.to_string(),
                        body: text.clone().into_bytes(),
                    };
                    let event = serde_json::from_str(&text).map_err(malformed);
                    return Ok(Incoming {
                        event,
                        receipt: Box::new(Line { text, again: self.again.0.clone() }),
                    });
                }
                Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
                Err(error) => return Err(SourceDown { place, why: error.to_string() }),
            }
        }
    }
}

/// A line that was read.
struct Line {
    text: String,
    again: UnboundedSender<String>,
}

#[async_trait]
impl Receipt for Line {
    /// Does nothing: a file needs no acknowledgement.
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }

    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // If the source was dropped, its successor reads the file from the beginning.
            let _ = self.again.send(self.text);
        });
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
