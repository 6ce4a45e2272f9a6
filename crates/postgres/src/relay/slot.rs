//! Position of a publisher in a slot of the log.
//!
//! A window contains what one snapshot sees and an earlier one does not. It is read in the order of positions: first the
//! events at or below the floor, which were written by transactions that were in flight in the earlier snapshot, then all
//! events above it.

use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;

/// A slot that a publisher holds.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The token under which it is held.
    pub(super) token: i64,
    /// The row that stores its position.
    pub(super) n: i64,
    /// The snapshot whose events have all been answered.
    pub(super) seen: String,
    /// Of the events that `seen` does not see, only those of transactions that were in flight in it are at or below this
    /// position.
    pub(super) floor: i64,
    /// The window that is being published.
    pub(super) window: Option<Window>,
    /// The last position in the window up to which all events have been answered.
    pub(super) pos: i64,
    /// Whether the last page contained all events requested from this slot, so that there are probably more.
    pub(super) full: bool,
}

/// A window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The snapshot at which it ends.
    pub(super) upto: String,
    /// The floor of the next window.
    pub(super) floor: i64,
}

impl Slot {
    pub(super) fn of_row(row: &PgRow) -> Decoded<(i16, Self)> {
        let upto: Option<String> = row.try_get("upto")?;
        let floor = row.try_get("floor")?;
        let next_floor: Option<i64> = row.try_get("next_floor")?;
        let slot = Self {
            token: row.try_get("token")?,
            n: row.try_get("n")?,
            seen: row.try_get("seen")?,
            floor,
            window: upto.map(|upto| Window { upto, floor: next_floor.unwrap_or(floor) }),
            pos: row.try_get("pos")?,
            full: false,
        };
        Ok((row.try_get("slot")?, slot))
    }

    /// Opens a window, unless one is open. `drawn`: a position that can be the floor for snapshots that are taken now.
    pub(super) fn open(&mut self, upto: &str, drawn: i64) {
        if self.window.is_none() {
            self.window = Some(Window { upto: upto.to_owned(), floor: self.floor.max(drawn) });
        }
    }

    /// Closes the window, after all of its events have been answered.
    pub(super) fn close(&mut self) {
        if let Some(window) = self.window.take() {
            self.seen = window.upto;
            self.floor = window.floor;
            self.pos = 0;
        }
    }
}
