//! Actions on alerts.

use super::actions;

actions! {
    /// An action on an alert.
    AlertAction {
        Silence = "silence" {
            title: "Silence",
            summary: "Silence an alert: targets are not told that it begins",
            effect: "Targets are not told that it begins. A target that was told already is told when it ends.",
        }
        Unsilence = "unsilence" {
            title: "End silence",
            summary: "End the silence of an alert",
            effect: "Targets that were not told that the alert has begun are told now, if it lasts.",
        }
    }
}
