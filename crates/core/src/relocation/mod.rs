//! A move: a whole store is carried to another one, page by page, and goes on there.
//!
//! The store that is left bears a [`Departure`], the one that is filled an [`Arrival`], both with the id of the move.
//! While they stand neither takes anything from anybody else. What is carried are the [`rows`] of the [`Part`]s, each
//! in the order of its key, so that a [`Position`] says how far it is.

mod part;
pub mod rows;

use jiff::Timestamp;
use thiserror::Error;

use crate::ident::{JobId, RunToken};
use crate::state::JobState;

pub use crate::ident::MoveId;
pub use part::{Part, Position};
pub use rows::Rows;

/// The most rows of a page.
pub const PAGE_ROWS_MAX: u32 = 5000;
/// A page takes no further row once its texts have so many bytes.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a store bears that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Which move.
    pub id: MoveId,
    /// Where to, without secrets.
    pub to: String,
    /// When it began, on this store's clock.
    pub began_at: Timestamp,
    /// When all of it had arrived; `None` while it is under way.
    pub completed_at: Option<Timestamp>,
}

/// What a store bears that a move fills, or has filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Which move.
    pub id: MoveId,
    /// Where from.
    pub from: String,
    /// When it began, on this store's clock.
    pub began_at: Timestamp,
    /// When it was complete; `None` while it is under way.
    pub completed_at: Option<Timestamp>,
}

/// How far a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which part.
    pub part: Part,
    /// Its last row that has arrived.
    pub position: Position,
    /// How many have.
    pub rows: u64,
    /// Whether it is all there.
    pub done: bool,
}

/// Rows of one part that lie between two positions.
#[derive(Clone, Debug)]
pub struct Page {
    /// After which position they begin.
    pub after: Position,
    /// The position of the last of them; where they begin when there is none.
    pub reached: Position,
    /// The rows.
    pub rows: Rows,
    /// Whether the part ends here.
    pub is_last: bool,
}

/// What numbers must never be given out again, though no row may have them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The highest id that a worker ever had; 0 for none.
    pub worker_last: i32,
}

/// Where a job stands, for comparison: its id, state and run token.
pub type Standing = (JobId, JobState, RunToken);

/// Why a move cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// Workers or relays live on the store that is to be left.
    #[error("{} still live there; stop them, or wait until their leases have run out", .workers.join(", "))]
    WorkersLive {
        /// What they are, with their names.
        workers: Vec<String>,
    },
    /// The store that is to be filled holds something. Nothing is overwritten or merged.
    #[error("{why}; a move needs a database without jobs")]
    NotEmpty {
        /// What it holds.
        why: String,
    },
    /// The store takes no such call because it is being moved, was moved, or is being filled.
    #[error("{words}")]
    Closed {
        /// The store's own words: what goes on and where to go.
        words: String,
    },
    /// The store does not know the move, or not as one that is under way.
    #[error("move {0} is not under way any more: it was given up or completed by another process")]
    NotUnderWay(MoveId),
    /// Another process has brought a page of the same move.
    #[error("another process goes on with move {id}: it has brought rows of {part}")]
    Raced {
        /// Which move.
        id: MoveId,
        /// Which part.
        part: Part,
    },
}
