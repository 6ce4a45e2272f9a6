//! Limits on open streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::client::Caller;
use crate::metrics::{Counts, Sample};
use crate::problem::{Code, Problem};

/// Limits on the open streams of a process.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Maximum number of streams.
    pub streams_max: usize,
    /// Maximum number of streams of one client: a token, or an address without a token.
    pub streams_per_client_max: usize,
    /// How long a client may take to accept data before its stream is ended.
    pub reader_time: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { streams_max: 1000, streams_per_client_max: 32, reader_time: Duration::from_secs(30) }
    }
}

/// The open streams. Cheap to clone.
#[derive(Clone)]
pub(crate) struct OpenStreams {
    limits: StreamLimits,
    taken: Arc<Mutex<HashMap<Caller, usize>>>,
    dropped: Arc<AtomicU64>,
}

impl OpenStreams {
    pub(crate) fn new(limits: StreamLimits) -> Self {
        Self { limits, taken: Arc::default(), dropped: Arc::default() }
    }

    /// Registers a stream, unless there are too many.
    pub(super) fn take(&self, client: Caller) -> Result<OpenStream, Problem> {
        let mut taken = self.lock();
        let StreamLimits { streams_max, streams_per_client_max, .. } = self.limits;
        if taken.values().sum::<usize>() >= streams_max {
            let words = format!(
                "{streams_max} streams are open, which is the maximum of this server; try again later"
            );
            return Err(Problem::new(Code::TooManyStreams, words));
        }
        let of_client = taken.entry(client.clone()).or_default();
        if *of_client >= streams_per_client_max {
            let words = format!(
                "this client has {streams_per_client_max} open streams, which is the maximum; close some, share one, or raise streams_per_client in [serve]"
            );
            return Err(Problem::new(Code::TooManyStreams, words));
        }
        *of_client += 1;
        drop(taken);
        Ok(OpenStream { seats: self.clone(), client })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Caller, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts for OpenStreams {
    fn samples(&self) -> Vec<Sample> {
        let open = self.lock().values().sum::<usize>();
        vec![
            Sample::gauge("streams", "Open streams of state changes", open as f64),
            Sample::counter(
                "streams_dropped",
                "Streams that were ended because their client was too slow",
                self.dropped.load(Ordering::Relaxed),
            ),
        ]
    }
}

/// An open stream; unregistered on drop.
pub(super) struct OpenStream {
    seats: OpenStreams,
    client: Caller,
}

impl OpenStream {
    /// Returns how long the stream waits for the client.
    pub(super) const fn reader_time(&self) -> Duration {
        self.seats.limits.reader_time
    }

    /// Counts a stream that was ended because its client was too slow.
    pub(super) fn count_dropped(&self) {
        self.seats.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        if let Some(of_client) = taken.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                taken.remove(&self.client);
            }
        }
    }
}
