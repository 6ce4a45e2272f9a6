//! The position at which the next deletion of old rows continues.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff_sqlx::Timestamp;

/// The position at which this process continues.
#[derive(Debug, Default)]
pub(crate) struct Reached(Mutex<Positions>);

#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// The time up to which dead letters have been deleted. Their index entries remain until vacuum removes them, so the
    /// next batch starts after them. A batch that finds none makes the next one start from the beginning.
    pub(crate) letters: Option<Timestamp>,
    /// The block of `ended` at which the next batch without pauses starts. Batches with pauses keep their position in the
    /// database.
    pub(crate) block: i64,
}

impl Reached {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
