//! How a store is opened.

use std::time::Duration;

use milepost_core::job::PAYLOAD_BYTES_MAX;

/// How long a verb waits for other processes unless configured otherwise.
pub const BUSY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// How a [`SqliteStore`](crate::SqliteStore) is opened.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// The largest payload accepted, in bytes.
    pub payload_bytes_max: usize,
    /// How long a verb waits for another process that keeps the file locked before it is answered with
    /// [`Unavailable`](milepost_core::error::StoreError::Unavailable).
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            busy_timeout: BUSY_TIMEOUT_DEFAULT,
        }
    }
}
