//! The three phases of a run: before, during and after the disturbance.

use std::time::Duration;

/// A third of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the disturbance.
    Before,
    /// While it lasts.
    During,
    /// After it.
    After,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];

    /// Returns its name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Before => "Before",
            Self::During => "During",
            Self::After => "After",
        }
    }
}

/// The times of the phases, from the beginning of the run.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// How long jobs are created.
    pub length: Duration,
}

impl Phases {
    /// Returns when the disturbance begins.
    #[must_use]
    pub fn begin(self) -> Duration {
        self.length / 3
    }

    /// Returns when it ends.
    #[must_use]
    pub fn end(self) -> Duration {
        self.length * 2 / 3
    }

    /// Returns the phase at this time. Everything after the last create is in the last phase.
    #[must_use]
    pub fn at(self, time: Duration) -> Phase {
        if time < self.begin() {
            Phase::Before
        } else if time < self.end() {
            Phase::During
        } else {
            Phase::After
        }
    }
}
