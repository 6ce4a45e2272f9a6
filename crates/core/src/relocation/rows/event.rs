//! Rows of events.

use super::{Position, Row};
use crate::event::Aggregate;
use crate::event::listing::LoggedEvent;

/// The head of an aggregate: its last sequence.
#[derive(Clone, Debug)]
pub struct Head {
    /// The aggregate.
    pub aggregate: Aggregate,
    /// The sequence of its last event.
    pub last: i64,
}

impl Row for Head {
    fn position(&self) -> Position {
        Position::Key(self.aggregate.kind.clone(), self.aggregate.id.clone())
    }
}

impl Row for LoggedEvent {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.event.payload.get().len()
    }
}
