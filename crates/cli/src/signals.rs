//! The signals that ask a process to leave.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal that [`Signals`] listens for is called.
pub(crate) fn name(signal: u8) -> &'static str {
    if i32::from(signal) == SignalKind::interrupt().as_raw_value() { "SIGINT" } else { "SIGTERM" }
}

/// Listens for SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// The number of the next one.
    pub(crate) async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        };
        kind.as_raw_value().try_into().unwrap_or(u8::MAX)
    }
}
