//! Actions on limits.

use super::actions;

actions! {
    /// An action on the limit of a kind or a group.
    LimitAction {
        Set = "set" {
            title: "Set limit",
            summary: "Limit a kind or a group, or change its limit",
            effect: "It replaces the limit of this kind or group completely. No running job is stopped. From now on no configuration changes it.",
        }
        SlowDown = "slow_down" {
            title: "Slow down the kind",
            summary: "Let hardly any job of a kind start",
            effect: "One of its jobs starts immediately and shows whether the problem persists. The others start at this rate, in all queues, \
                     until an operator removes the limit. Other kinds and running jobs are not affected.",
            is_destructive: true,
        }
        Remove = "remove" {
            title: "Remove limit",
            summary: "Remove a limit",
            effect: "Jobs of the kind start as soon as workers are free. A group has one slot again, or the limit of its class.",
        }
    }
}
