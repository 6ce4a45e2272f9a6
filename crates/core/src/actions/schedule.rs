//! Actions on schedules.

use super::actions;

actions! {
    /// An operation on a schedule.
    #[cfg_attr(feature = "openapi", schema(as = ScheduleOperation))]
    ScheduleAction {
        Pause = "pause" {
            title: "Pause",
            summary: "Pause a schedule",
            effect: "It does not tick until an operator resumes it. Ticks during the pause are dropped.",
            is_destructive: true,
        }
        Resume = "resume" {
            title: "Resume",
            summary: "Resume a paused schedule with its next tick from now",
            effect: "It continues with its next tick from now on. Ticks during the pause are dropped.",
        }
        RunNow = "run_now" {
            title: "Run now",
            summary: "Enqueue a job, or start a batch, of a schedule now; its ticks are not changed",
            effect: "It creates its job or batch once, in addition to its ticks, even while it is paused.",
        }
    }
}

actions! {
    /// A change of a schedule itself.
    ScheduleChange {
        Create = "create" {
            title: "Create schedule",
            summary: "Create a schedule",
            effect: "It creates a job, or starts a batch of the latest version of a DAG, at each of its ticks.",
        }
        Edit = "edit" {
            title: "Edit",
            summary: "Replace a schedule; a paused one stays paused",
            effect: "Due ticks are kept if the ticks are unchanged. A paused schedule stays paused. From now on no configuration changes it.",
        }
        Remove = "remove" {
            title: "Remove",
            summary: "Remove a schedule; its jobs and batches stay",
            effect: "It does not tick any more. Its jobs and batches stay.",
            is_destructive: true,
        }
    }
}
