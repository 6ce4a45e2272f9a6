//! The lines of a `jsonl` sink as a source of events. Any broker can be read so that `milepost_relay` has no source for.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use milepost_relay::consumer::{Incoming, Malformed, Receipt, Source, SourceDown};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncSeekExt, BufReader};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reads the file from its beginning, and goes on with what is added: the inbox knows what was taken in before.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    read_to: u64,
    /// Lines that shall come again.
    again: (UnboundedSender<String>, UnboundedReceiver<String>),
}

impl Lines {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read_to: 0, again: mpsc::unbounded_channel() }
    }

    /// The next whole line, if there is one.
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
        // What has no end yet is still being written.
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
    /// There is nobody to tell.
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }

    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // When the source is gone, its successor reads the file from its beginning.
            let _ = self.again.send(self.text);
        });
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
