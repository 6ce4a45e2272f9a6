//! Migration of a complete store to another one (a move), page by page.
//!
//! The source store is marked with a [`Departure`], the target store with an [`Arrival`], both with the id of the move.
//! While these marks exist, neither store accepts other changes. A move transfers the [`rows`] of the [`Part`]s, each
//! part in key order, so that a [`Position`] describes how much of it has arrived.

mod part;
pub mod rows;

use jiff::Timestamp;
use thiserror::Error;

use crate::ident::{JobId, RunToken};
use crate::state::JobState;

pub use crate::ident::MoveId;
pub use part::{Part, Position};
pub use rows::Rows;

/// The maximum number of rows of a page.
pub const PAGE_ROWS_MAX: u32 = 5000;
/// The size in bytes of a page's texts after which no further row is added.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The mark of a source store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The id of the move.
    pub id: MoveId,
    /// The target, without secrets.
    pub to: String,
    /// When it began, by this store's clock.
    pub began_at: Timestamp,
    /// When everything had arrived; `None` while the move is in progress.
    pub completed_at: Option<Timestamp>,
}

/// The mark of a target store that a move is filling or has filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The id of the move.
    pub id: MoveId,
    /// The source.
    pub from: String,
    /// When it began, by this store's clock.
    pub began_at: Timestamp,
    /// When it was complete; `None` while the move is in progress.
    pub completed_at: Option<Timestamp>,
}

/// The progress of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The part.
    pub part: Part,
    /// The position of its last row that has arrived.
    pub position: Position,
    /// The number of rows that have arrived.
    pub rows: u64,
    /// Whether the part is complete.
    pub done: bool,
}

/// Rows of one part between two positions.
#[derive(Clone, Debug)]
pub struct Page {
    /// The position after which they begin.
    pub after: Position,
    /// The position of the last row; equal to `after` for an empty page.
    pub reached: Position,
    /// The rows.
    pub rows: Rows,
    /// Whether this is the end of the part.
    pub is_last: bool,
}

/// Numbers that must not be assigned again, although no row may have them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The highest worker id ever assigned; 0 for none.
    pub worker_last: i32,
}

/// A job's id, state and run token, for comparison.
pub type Standing = (JobId, JobState, RunToken);

/// The reason why a move cannot begin or continue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MoveError {
    /// Workers or relays are active on the source store.
    #[error("still active there: {}; stop them, or wait until their leases have expired", .workers.join(", "))]
    WorkersLive {
        /// Their types and names.
        workers: Vec<String>,
    },
    /// The target store is not empty. Nothing is overwritten or merged.
    #[error(
        "{why}; a move needs a database without data of Milepost: drop its schema `milepost` if you do not need it"
    )]
    NotEmpty {
        /// The content of the store.
        why: String,
    },
    /// The store rejects the call because it is the source or target of a move, in progress or completed.
    #[error("{words}")]
    Closed {
        /// The store's message: the state of the move and the store to use.
        words: String,
    },
    /// The store has no such move in progress.
    #[error("move {0} is no longer in progress: it was abandoned or completed by another process")]
    NotUnderWay(MoveId),
    /// A row of the source store has a value that Milepost does not write, so that it cannot be moved.
    #[error(
        "the row of {part} with {key} cannot be moved: {why}; abandon the move with --give-up, correct the row, and move again"
    )]
    Unreadable {
        /// The part.
        part: Part,
        /// The first column of the row, with its value.
        key: String,
        /// The column and its fault.
        why: String,
    },
    /// Another process has written a page of the same move.
    #[error("another process continues move {id}: it has written rows of {part}")]
    Raced {
        /// The id of the move.
        id: MoveId,
        /// The part.
        part: Part,
    },
}
