//! Actions on queues.

use super::actions;

actions! {
    /// An action on a queue.
    QueueAction {
        Pause = "pause" {
            title: "Pause the queue",
            summary: "Stop workers from claiming jobs of a queue; running jobs continue",
            effect: "Its jobs are not claimed until an operator resumes it. Running jobs are not affected.",
            is_destructive: true,
        }
        Resume = "resume" {
            title: "Resume the queue",
            summary: "Let workers claim jobs of a paused queue again",
            effect: "Its jobs are claimed again.",
        }
    }
}

impl QueueAction {
    /// Returns the action that pauses the queue, or the one that resumes it.
    #[must_use]
    pub const fn to(paused: bool) -> Self {
        if paused { Self::Pause } else { Self::Resume }
    }

    /// Describes the result. `changed`: whether the action changed anything.
    #[must_use]
    pub const fn result(self, changed: bool) -> &'static str {
        match (self, changed) {
            (Self::Pause, true) => "is paused",
            (Self::Pause, false) => "was paused already",
            (Self::Resume, true) => "is resumed",
            (Self::Resume, false) => "was not paused",
        }
    }
}
