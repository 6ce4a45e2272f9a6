//! Actions on retention periods.

use super::actions;

actions! {
    /// An action on the retention period of jobs, events or other data.
    RetentionAction {
        Set = "set" {
            title: "Set period",
            summary: "Set a retention period for all workers",
            effect: "It replaces the period of every configuration, within a minute. Data that is older is deleted, and cannot be recovered.",
            is_destructive: true,
        }
        Remove = "remove" {
            title: "Use the configuration",
            summary: "Remove a retention period, so that the configuration applies again",
            effect: "Each worker uses the period of its configuration again, or the default. Data that is older is deleted, and cannot be recovered.",
            is_destructive: true,
        }
    }
}
