//! The rules that the model of the log checks, and the defects that break them.

/// A rule that every state must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A reader that continues from the stored position delivers every committed event of the server.
    NoEventIsSkipped,
    /// No position passes a committed event that was not acknowledged.
    NoEventIsPassed,
    /// No position is used on a server that has lost commits since the position was read.
    NoOldPositionIsUsed,
    /// A client of the stream receives no change twice, except after a reset.
    NoChangeIsSentTwice,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 4] =
        [Self::NoEventIsSkipped, Self::NoEventIsPassed, Self::NoOldPositionIsUsed, Self::NoChangeIsSentTwice];

    /// Returns the name of the property in the checker's output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEventIsSkipped => "no committed event is skipped",
            Self::NoEventIsPassed => "no event is passed before it is acknowledged",
            Self::NoOldPositionIsUsed => "no position of an older timeline is used",
            Self::NoChangeIsSentTwice => "no change is sent twice",
        }
    }
}

/// A defect of a reader or of the server's epochs that the checker must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// The position is the highest position that was read, not a snapshot.
    SequenceCursor,
    /// The floor of a window is read without a transaction of the reader that ends before the snapshot is taken.
    FloorWithoutOwnTransaction,
    /// A position is stored before its events are acknowledged.
    PositionBeforeAcknowledge,
    /// A reader does not compare the epoch of its position with that of the server.
    PositionKeptAcrossFailover,
    /// A crash, after which transaction ids are assigned again, begins no epoch.
    IdsGivenOutAgain,
}
