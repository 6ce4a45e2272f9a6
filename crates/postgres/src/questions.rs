//! The statements of doctor checks, in files named like the checks.

use milepost_core::doctor::Check;

macro_rules! questions {
    ($($check:literal,)+) => {
        const QUESTIONS: &[(&str, &str)] = &[$(($check, include_str!(concat!("../queries/doctor/", $check, ".sql")))),+];
    };
}

/// Returns the statement of a check; `None` if the check of this store does not read rows.
pub(crate) fn of_check(check: Check) -> Option<&'static str> {
    QUESTIONS.iter().find(|(name, _)| *name == check.as_str()).map(|(_, sql)| *sql)
}

questions! {
    "aggregate_behind",
    "aggregate_in_two_slots",
    "attempts_over",
    "autovacuum_off",
    "batch_counts_differ",
    "batch_incomplete",
    "batch_leftover",
    "bulk_cursor_beyond",
    "bulk_end_differs",
    "bulk_failures_differ",
    "bulk_leftover",
    "bulk_rows_differ",
    "bulk_token_ahead",
    "bulk_without_job",
    "clock_difference",
    "commits_unsafe",
    "dead_rows",
    "group_left_waiting",
    "group_over_limit",
    "held_event_gone",
    "history_gap",
    "history_off_graph",
    "history_without_job",
    "holder_without_slot",
    "job_in_both",
    "job_without_batch",
    "job_without_key",
    "job_without_place",
    "key_shared",
    "key_without_job",
    "live_without_job",
    "long_transaction",
    "missing_privilege",
    "nobody_publishes",
    "not_created_once",
    "parked_without_aggregate",
    "parked_without_events",
    "pre_cnt_differs",
    "progress_without_job",
    "promoted",
    "ready_at_wrong",
    "reseed_needed",
    "running_past_lease",
    "running_without_worker",
    "schedule_overdue",
    "slot_without_holder",
    "slots_missing",
    "state_differs",
    "stop_overdue",
    "task_left_due",
    "task_state_differs",
    "token_differs",
    "token_off",
    "two_ends",
    "vacuum_held_back",
    "waits_by_wrong_clock",
    "weak_durability",
    "worker_unburied",
}
