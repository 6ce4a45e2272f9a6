//! The signals that ask a process to stop.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals within this time are one signal: `timeout`, shells and supervisors signal both a process and its group, so that a signal arrives
/// twice.
const SAME_WITHIN: Duration = Duration::from_secs(1);

/// The time limit for the rest of a start after a signal. It is exceeded if the store does not answer.
const START_MAX: Duration = Duration::from_secs(2);

/// Returns the name of a signal that [`Signals`] listens for.
pub(crate) fn name(signal: u8) -> &'static str {
    if i32::from(signal) == SignalKind::interrupt().as_raw_value() { "SIGINT" } else { "SIGTERM" }
}

/// Listens for SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    last: Option<Instant>,
}

/// The result of a start. `signal`: the signal that arrived during the start. `started`: missing if the start took too long after that.
pub(crate) struct Start<T> {
    pub(crate) started: Option<T>,
    pub(crate) signal: Option<u8>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt, last: None })
    }

    /// Waits for the start of a process. After a signal it has [`START_MAX`] to complete.
    pub(crate) async fn during<T>(&mut self, start: impl Future<Output = Result<T>>) -> Result<Start<T>> {
        let mut start = Box::pin(start);
        let signal = tokio::select! {
            started = &mut start => return Ok(Start { started: Some(started?), signal: None }),
            signal = self.next() => signal,
        };
        let started = tokio::time::timeout(START_MAX, start).await.ok().transpose()?;
        Ok(Start { started, signal: Some(signal) })
    }

    /// Waits for the next signal and returns its number. Signals within a second of the last returned one are ignored.
    pub(crate) async fn next(&mut self) -> u8 {
        loop {
            let kind = tokio::select! {
                _ = self.terminate.recv() => SignalKind::terminate(),
                _ = self.interrupt.recv() => SignalKind::interrupt(),
            };
            if self.last.is_none_or(|last| last.elapsed() >= SAME_WITHIN) {
                self.last = Some(Instant::now());
                return kind.as_raw_value().try_into().unwrap_or(u8::MAX);
            }
        }
    }
}
