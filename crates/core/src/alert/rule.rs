//! The rules of alerts. Their names are used in configurations, messages and the API.

use crate::named::named_enum;

named_enum! {
    /// The kind of problem that an alert reports.
    AlertRule {
        /// Jobs wait in a queue that no active worker serves.
        QueueUnserved = "queue_unserved",
        /// Jobs of a kind are due, and no active worker of their queue has a handler for it.
        KindUnserved = "kind_unserved",
        /// Jobs failed permanently.
        JobsFailed = "jobs_failed",
        /// Many jobs, or jobs with many attempts, fail and are tried again.
        JobsRetrying = "jobs_retrying",
        /// Jobs are aborted.
        JobsAborted = "jobs_aborted",
        /// A batch failed.
        BatchFailed = "batch_failed",
        /// A batch is aborted.
        BatchAborted = "batch_aborted",
        /// A bulk job failed.
        BulkFailed = "bulk_failed",
        /// A bulk job is aborted.
        BulkAborted = "bulk_aborted",
        /// A bulk job is throttled for longer than a minute.
        BulkThrottled = "bulk_throttled",
        /// A subscription needs a reseed.
        SubscriptionReseed = "subscription_reseed",
        /// Aggregates of a subscription are halted.
        SubscriptionHalted = "subscription_halted",
        /// Aggregates of a subscription are parked.
        SubscriptionParked = "subscription_parked",
        /// The sink of a subscription is down.
        SubscriptionDown = "subscription_down",
        /// A subscription is paused.
        SubscriptionPaused = "subscription_paused",
        /// A subscription lags.
        SubscriptionLags = "subscription_lags",
        /// Events of a subscription were dead-lettered.
        SubscriptionDead = "subscription_dead",
        /// Events wait in an inbox for an earlier one.
        InboxWaiting = "inbox_waiting",
        /// An inbox has dead letters.
        InboxDead = "inbox_dead",
        /// A schedule started no batch at its last tick.
        ScheduleRefused = "schedule_refused",
        /// A tick of a schedule is late.
        ScheduleLate = "schedule_late",
        /// A schedule is paused.
        SchedulePaused = "schedule_paused",
        /// A queue is paused.
        QueuePaused = "queue_paused",
        /// Jobs wait for a limit that an operator has lowered.
        LimitSlowed = "limit_slowed",
        /// The database server was promoted or restored.
        DatabasePromoted = "database_promoted",
        /// Workers died within the last 15 minutes.
        WorkersDied = "workers_died",
        /// Messages to a target of alerts fail.
        TargetFailing = "target_failing",
    }
}

impl AlertRule {
    /// Returns the names of all rules.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|rule| rule.as_str()).collect()
    }
}
