//! Actions on subscriptions.

use super::actions;

actions! {
    /// An action on a subscription.
    SubscriptionAction {
        Pause = "pause" {
            title: "Pause",
            summary: "Pause a subscription until it is resumed",
            effect: "No events are published until an operator resumes it. Events in flight are completed first.",
            is_destructive: true,
        }
        Resume = "resume" {
            title: "Resume",
            summary: "Resume a paused subscription",
            effect: "Publishing continues from its position.",
        }
        RetryParked = "retry_parked" {
            title: "Retry parked",
            summary: "Retry the first event of every parked aggregate now",
            effect: "The first event of each parked aggregate is retried now, and gets all its attempts again.",
        }
        Replay = "replay" {
            title: "Replay",
            summary: "Publish events again",
            effect: "Publishes events again: those of one aggregate from a sequence on, or all since a time, in the order of each aggregate, \
                     with the payloads that were emitted. Receivers that do not record processed ids process them twice.",
            is_destructive: true,
        }
    }
}
