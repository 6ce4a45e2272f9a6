//! Actions on alerts.

use super::actions;

actions! {
    /// An action on an alert.
    AlertAction {
        Silence = "silence" {
            title: "Silence",
            summary: "Silence an alert: targets are not notified that it begins",
            effect: "Targets are not notified that it begins. A target that was notified already is notified when it ends.",
        }
        Unsilence = "unsilence" {
            title: "End silence",
            summary: "End the silence of an alert",
            effect: "Targets that were not notified that the alert has begun are notified now, if it lasts.",
        }
    }
}
