//! Options for opening a store.

use std::time::Duration;

use milepost_core::job::PAYLOAD_BYTES_MAX;

/// The default for how long a verb waits for other processes.
pub const BUSY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Options for opening a [`SqliteStore`](crate::SqliteStore).
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// The largest payload accepted, in bytes.
    pub payload_bytes_max: usize,
    /// How long a verb waits for another process that keeps the file locked before it fails with
    /// [`Unavailable`](milepost_core::error::StoreError::Unavailable).
    pub busy_timeout: Duration,
    /// The threads on which statements run.
    pub threads: Threads,
}

/// The threads on which statements run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Threads of the store, so that no task of the caller is delayed.
    #[default]
    OfStore,
    /// The thread that polls the call. For simulations: their order must not depend on threads.
    OfCallers,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            busy_timeout: BUSY_TIMEOUT_DEFAULT,
            threads: Threads::OfStore,
        }
    }
}
