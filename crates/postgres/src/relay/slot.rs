//! How far a publisher is in a slot.
//!
//! A window is what one snapshot sees and an earlier one does not. It is read in the order of positions: first what was written
//! by transactions that were in flight in the earlier snapshot, at or below the floor, then all that is above it.

use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;

/// A slot that is held.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Under which token.
    pub(super) token: i64,
    /// Which row says where it is.
    pub(super) n: i64,
    /// The snapshot of which everything has its answer.
    pub(super) seen: String,
    /// Of what `seen` does not see, only transactions that were in flight in it have written at or below this position.
    pub(super) floor: i64,
    /// The window that is being published.
    pub(super) window: Option<Window>,
    /// Up to where it has its answers.
    pub(super) pos: i64,
    /// Whether the last page had all that was asked of this slot, so that there is likely to be more.
    pub(super) full: bool,
}

/// A window: what it goes up to.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The snapshot.
    pub(super) upto: String,
    /// Its floor.
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

    /// Opens a window, unless one is open. `drawn`: a position that is a floor of snapshots that are taken now.
    pub(super) fn open(&mut self, upto: &str, drawn: i64) {
        if self.window.is_none() {
            self.window = Some(Window { upto: upto.to_owned(), floor: self.floor.max(drawn) });
        }
    }

    /// Everything of the window has its answer.
    pub(super) fn close(&mut self) {
        if let Some(window) = self.window.take() {
            self.seen = window.upto;
            self.floor = window.floor;
            self.pos = 0;
        }
    }
}
