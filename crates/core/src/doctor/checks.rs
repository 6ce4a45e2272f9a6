//! The list of checks. To add a check, add an entry here and a statement in the stores.

use super::{Cost, Severity, Stores};
use crate::named::named_enum;

macro_rules! checks {
    ($($name:ident = $code:literal, $severity:ident, $stores:ident, $cost:ident, promise $promise:literal,
        means $means:literal, mend $mend:literal $(, repair $repair:literal)?;)+) => {
        named_enum! {
            /// A consistency check of a store.
            Check { $(#[doc = $means] $name = $code,)+ }
        }

        impl Check {
            /// Returns the severity of its findings.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// Returns the stores that it applies to.
            #[must_use]
            pub const fn stores(self) -> Stores {
                match self { $(Self::$name => Stores::$stores,)+ }
            }

            /// Returns how much data it reads.
            #[must_use]
            pub const fn cost(self) -> Cost {
                match self { $(Self::$name => Cost::$cost,)+ }
            }

            /// Returns the number of the guarantee in `docs/GUARANTEES.md` that it checks.
            #[must_use]
            pub const fn promise(self) -> u8 {
                match self { $(Self::$name => $promise,)+ }
            }

            /// Returns what a finding means.
            #[must_use]
            pub const fn means(self) -> &'static str {
                match self { $(Self::$name => $means,)+ }
            }

            /// Returns what an operator can do about a finding.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $mend,)+ }
            }

            /// Returns what an automatic repair does; `None` when no repair is safe without an operator.
            #[must_use]
            pub const fn repair(self) -> Option<&'static str> {
                match self { $(Self::$name => checks!(@repair $($repair)?),)+ }
            }
        }
    };
    (@repair $repair:literal) => { Some($repair) };
    (@repair) => { None };
}

checks! {
    LiveWithoutJob = "live_without_job", Error, All, Quick, promise 1,
        means "A job has a row in live, but its row in job is missing.",
        mend "Restore the row of job from a backup. Without it the job cannot run: record it and delete its row of live.";
    JobWithoutPlace = "job_without_place", Error, All, Full, promise 1,
        means "A job has no row in live and none in ended: it never runs, and no list shows it.",
        mend "Read its history. If the repair cannot determine its state, enqueue the job again.",
        repair "Restores its row with the state from its history, if that history is complete. The result of a job that had succeeded is lost.";
    JobInBoth = "job_in_both", Error, All, Quick, promise 5,
        means "A job has rows in live and in ended at the same time: it may run again after its end.",
        mend "Compare both rows with its history and delete the wrong one.",
        repair "Deletes the row that contradicts its history, if the other one agrees with it.";
    StateDiffers = "state_differs", Error, All, Full, promise 6,
        means "A job's row and the last entry of its history have different states: one of them was changed by hand.",
        mend "Find out which one is correct (`milepost jobs show`), then cancel, retry or rerun the job.";
    TokenDiffers = "token_differs", Error, All, Full, promise 4,
        means "A job's run token is not the highest of its history: an old run could be accepted as the current one.",
        mend "Stop the workers that may hold it and raise the token to that of its history.",
        repair "Raises a token that is too low, unless the job runs.";
    AttemptsOver = "attempts_over", Error, All, Full, promise 8,
        means "A job has had more attempts than its maximum.",
        mend "Cancel the job if it must not run again; its history shows who allowed the additional attempts.";
    NotCreatedOnce = "not_created_once", Error, All, Full, promise 6,
        means "A job's history does not have exactly one entry of its creation.",
        mend "Its history was changed by hand or restored in part: do not rely on it.";
    HistoryGap = "history_gap", Error, All, Full, promise 6,
        means "An entry of a history does not start in the state in which the previous entry ended.",
        mend "Its history was changed by hand or restored in part: do not rely on it.";
    HistoryOffGraph = "history_off_graph", Error, All, Full, promise 6,
        means "A history contains a change that no verb makes.",
        mend "Find out who writes to the tables without the verbs; do not rely on this history.";
    TokenOff = "token_off", Error, All, Full, promise 4,
        means "In a history, the run token decreases, or increases without a claim: a stale run may have been accepted.",
        mend "Check whether the job had duplicate effects; find out who writes to the tables without the verbs.";
    TwoEnds = "two_ends", Error, All, Full, promise 3,
        means "One run of a job has two accepted ends.",
        mend "Check whether the job had duplicate effects; find out who writes to the tables without the verbs.";
    KeyWithoutJob = "key_without_job", Error, All, Full, promise 2,
        means "A key belongs to a job that no longer exists: an enqueue with the key returns a job that never runs.",
        mend "Delete the row of job_key, then enqueue the job again if its work was not done.",
        repair "Deletes the key, so that the next enqueue with it creates a job.";
    JobWithoutKey = "job_without_key", Error, All, Full, promise 2,
        means "The key of a job is missing in job_key: a second job could be created with the same key.",
        mend "Insert the row of job_key.",
        repair "Inserts the key for the job, if no other job has it.";
    KeyShared = "key_shared", Error, All, Full, promise 2,
        means "The key of a job belongs to another job in job_key: two jobs have the same key.",
        mend "Decide which job is the right one and cancel the other.";
    SlotWithoutHolder = "slot_without_holder", Error, All, Quick, promise 7,
        means "A slot of a group is assigned to a job that may not hold it: other jobs wait unnecessarily.",
        mend "Delete the row of group_slot; upkeep assigns the slot again.",
        repair "Frees the slot and assigns it to the next job.";
    HolderWithoutSlot = "holder_without_slot", Error, All, Quick, promise 7,
        means "A job of a group may run without a slot: more jobs could run at the same time than the limit allows.",
        mend "Cancel or abort one of the group's jobs.",
        repair "Assigns the slot to it, if the slot is free.";
    GroupOverLimit = "group_over_limit", Warning, All, Quick, promise 7,
        means "More jobs hold slots of a group than its limit allows: the limit was lowered and the surplus jobs have not ended yet, or rows were changed by hand.",
        mend "Wait for the surplus jobs to end. If the limit was not lowered, cancel or abort jobs until it is met.";
    GroupLeftWaiting = "group_left_waiting", Error, All, Quick, promise 9,
        means "A slot of a group is free although a job has been waiting for it for a long time; or the group's rate has tokens again, but no process assigns them.",
        mend "Start a worker: its upkeep assigns free slots.",
        repair "Assigns the slot.";
    RunningWithoutWorker = "running_without_worker", Error, All, Quick, promise 9,
        means "A running job has no worker: it is never rescued.",
        mend "Abort and resume it (the old run is fenced off).",
        repair "Ends the run as lost: the job is retried, or fails if it has no attempts left. A job that is not running according to its history is left alone.";
    RunningPastLease = "running_past_lease", Error, All, Quick, promise 9,
        means "A job runs under a worker that no longer exists or whose lease expired long ago: no active process rescues it.",
        mend "Start a worker: its upkeep rescues the jobs of dead workers.",
        repair "Declares the worker dead and rescues its jobs, as upkeep does.";
    StopOverdue = "stop_overdue", Error, All, Quick, promise 9,
        means "A job was asked to stop, its grace time ended long ago, and it still runs.",
        mend "Start a worker: its upkeep fences off jobs that do not stop.",
        repair "Fences off its run and ends the job as requested.";
    ReadyAtWrong = "ready_at_wrong", Error, All, Quick, promise 9,
        means "A waiting job has no start time and is never claimed, or a job that does not wait has one and could be claimed.",
        mend "Set ready_at of jobs that wait, and clear it for all others.",
        repair "Sets it to now, or clears it.";
    ProgressWithoutJob = "progress_without_job", Warning, All, Full, promise 6,
        means "A row of progress belongs to a job that no longer exists.",
        mend "Delete it.",
        repair "Deletes it.";
    BulkWithoutJob = "bulk_without_job", Warning, All, Full, promise 13,
        means "A row of bulk belongs to a job that no longer exists.",
        mend "Delete it.",
        repair "Deletes it.";
    BulkLeftover = "bulk_leftover", Warning, All, Full, promise 13,
        means "Settings, failed targets or staged rows belong to a bulk job that no longer exists.",
        mend "Delete them.",
        repair "Deletes them.";
    BulkRowsDiffer = "bulk_rows_differ", Error, All, Full, promise 13,
        means "The staged rows of a bulk job are not those that it was started with: some are missing, or some were added by hand.",
        mend "Cancel it if it has not finished, and start it again with its file; find out who writes to the tables without the verbs.";
    BulkEndDiffers = "bulk_end_differs", Error, All, Full, promise 13,
        means "A bulk job succeeded before all its targets were processed, or all were processed and it did not succeed: rows were changed by hand, or another handler runs jobs of its name.",
        mend "Compare its notes, rows or jobs with its targets. If some are missing, start it again; cancel a job whose targets were all processed.";
    BulkTokenAhead = "bulk_token_ahead", Error, All, Full, promise 4,
        means "A bulk job was taken over with a run token that its job never had: no worker can continue it.",
        mend "Its history shows the tokens that it had; find out who writes to the tables without the verbs. Cancel it and start it again.";
    BulkFailuresDiffer = "bulk_failures_differ", Error, All, Full, promise 13,
        means "The number of failures that a bulk job counted differs from the table of failures: some are missing or were never counted.",
        mend "Compare its failures with the effects on their targets; find out who writes to the tables without the verbs.";
    BulkCursorBeyond = "bulk_cursor_beyond", Error, All, Full, promise 13,
        means "The cursor of a bulk job is after its last target, or has a value although its last target is not known: targets may have been skipped.",
        mend "Abort it, compare its effects with its targets, and start it again.";
    TaskStateDiffers = "task_state_differs", Error, All, Full, promise 15,
        means "A task of a batch has another state than its job or inner batch, or is recorded as active and is not: its successors never run, or ran too early.",
        mend "Find out who writes to the tables without the verbs. Tasks that ran too early are not undone: see `milepost batch show`.",
        repair "Sets it to the state of its job or inner batch, or to failed if that no longer exists, and lets its successors run. Not while ends in its batch are still being counted.";
    PreCntDiffers = "pre_cnt_differs", Error, All, Full, promise 15,
        means "The counters of a task of a batch differ from the ends of its predecessors, or it waits although all of them have ended: it never runs, or ran too early.",
        mend "Find out who writes to the tables without the verbs. Tasks that ran too early are not undone: see `milepost batch show`.",
        repair "Counts again, and runs or skips tasks that wait unnecessarily. Not while ends in its batch are still being counted.";
    BatchCountsDiffer = "batch_counts_differ", Error, All, Full, promise 15,
        means "The counts, the state or the end time of a batch do not match its tasks.",
        mend "Find out who writes to the tables without the verbs.",
        repair "Counts again; if the batch is a task of another batch, that task gets its state. Not while ends in it are still being counted.";
    BatchIncomplete = "batch_incomplete", Error, All, Full, promise 15,
        means "A batch that has not ended lacks its input or some of its tasks, or has more tasks than its version: it cannot finish.",
        mend "Restore the rows from a backup, or cancel the batch and start another one. The other checks ignore it.";
    BatchLeftover = "batch_leftover", Warning, All, Full, promise 16,
        means "Tasks, an input, ends to be counted or a history belong to a batch that no longer exists.",
        mend "Delete them when no job of the batch is in progress.",
        repair "Deletes them, unless a job of the batch is in progress.";
    JobWithoutBatch = "job_without_batch", Warning, All, Full, promise 16,
        means "A job that has not ended belongs to a batch that no longer exists: its end has no effect on other tasks.",
        mend "Cancel it, or let it run on its own.";
    TaskLeftDue = "task_left_due", Warning, All, Quick, promise 15,
        means "Tasks of a batch have been due for a long time, or ends wait to be counted: no active process handles batches, or those that do are evaluating large expressions of other batches first.",
        mend "Start a worker. If workers are active, check again whether the number decreases; if it does not, their logs show why they cannot continue the batch.";
    HistoryWithoutJob = "history_without_job", Warning, All, Full, promise 6,
        means "A history belongs to a job that no longer exists: its row of job was deleted by hand.",
        mend "Keep it as evidence, or delete it.";
    WorkerUnburied = "worker_unburied", Warning, All, Quick, promise 9,
        means "A worker's lease expired long ago and it was not declared dead: no active process performs upkeep.",
        mend "Start a worker.",
        repair "Declares it dead and rescues its jobs, as upkeep does.";
    ScheduleOverdue = "schedule_overdue", Warning, All, Quick, promise 10,
        means "A tick of a schedule is long overdue and was not processed.",
        mend "Start a worker; if workers are active, their logs show why the schedule cannot tick.";
    WaitsByWrongClock = "waits_by_wrong_clock", Warning, All, Full, promise 10,
        means "A job waits for a time that was computed while the clock was ahead: its history has entries in the future.",
        mend "Set the correct time with `milepost jobs snooze ID --for 1s`, or a longer time.";
    AggregateBehind = "aggregate_behind", Error, All, Full, promise 17,
        means "An aggregate has a lower sequence than its log, or has events but no row: its next event is rejected.",
        mend "Raise last_seq in its row of aggregate to the highest sequence of its events.",
        repair "Raises it, or creates the row.";
    AggregateInTwoSlots = "aggregate_in_two_slots", Error, Postgres, Full, promise 19,
        means "Events of one aggregate are in two slots: they can be published out of order.",
        mend "Find out who writes to the tables without the verbs. Stop the relays, and set the slot of all its rows to that of its row of aggregate.";
    ParkedWithoutEvents = "parked_without_events", Error, All, Quick, promise 19,
        means "An aggregate is parked, but none of its events is: its new events wait unnecessarily.",
        mend "Delete its row of parked_aggregate; running relays notice this only after a restart.",
        repair "Deletes the row.";
    ParkedWithoutAggregate = "parked_without_aggregate", Error, All, Quick, promise 19,
        means "An event is parked, but its aggregate is not: it is never published.",
        mend "Delete its rows of parked_event and replay the aggregate for the subscription from that event on.";
    HeldEventGone = "held_event_gone", Error, All, Quick, promise 19,
        means "A parked event or a dead letter is no longer in the log: it cannot be published.",
        mend "Restore the event from a backup if its receivers need it; find out who writes to the tables without the verbs.",
        repair "Deletes the row, and the row of its parked aggregate if no other event of it is parked.";
    NobodyPublishes = "nobody_publishes", Warning, All, Quick, promise 19,
        means "Events have been waiting for a long time for a subscription that is not paused, and no relay publishes them.",
        mend "Start a relay; pause the subscription if that is intended, or remove it if it is not needed.";
    SlotsMissing = "slots_missing", Error, Postgres, Quick, promise 19,
        means "A subscription does not have its 64 slots: events in the missing ones are never published.",
        mend "Restore the rows of subscription_slot and slot_position from a backup, or remove the subscription: a new one with its name publishes the whole log again.";
    ReseedNeeded = "reseed_needed", Error, Postgres, Quick, promise 19,
        means "The positions of a subscription were stored in another database, for example because a dump was restored: relays refuse them, and no event is published.",
        mend "Run `milepost events reseed`, after which some events are published again.";
    WeakDurability = "weak_durability", Error, All, Quick, promise 1,
        means "A setting allows a crash of the machine to lose or damage acknowledged data.",
        mend "PostgreSQL: turn fsync and full_page_writes on. SQLite: keep the file on a local file system that supports WAL.";
    Promoted = "promoted", Warning, Postgres, Quick, promise 1,
        means "The server was promoted or restored within the last week: changes that the old server acknowledged but had not replicated are lost.",
        mend "Compare what clients were told since the last replicated commit with the store, and enqueue the missing jobs. Set synchronous_standby_names so that nothing is lost the next time.";
    CommitsUnsafe = "commits_unsafe", Warning, Postgres, Quick, promise 1,
        means "synchronous_commit is off by default: jobs enqueued in your transactions can be lost if the server crashes.",
        mend "Set synchronous_commit = on for the role or the transactions that enqueue. Claims and ends are safe.";
    VacuumHeldBack = "vacuum_held_back", Warning, Postgres, Quick, promise 9,
        means "An old snapshot prevents the removal of dead rows: claims gradually become slower.",
        mend "End the session, commit or roll back the prepared transaction, or drop the replication slot.";
    LongTransaction = "long_transaction", Warning, Postgres, Quick, promise 9,
        means "A transaction has been open for a long time: it holds locks and prevents the removal of dead rows.",
        mend "End the session; set idle_in_transaction_session_timeout for it.";
    DeadRows = "dead_rows", Warning, Postgres, Quick, promise 9,
        means "A table has more dead rows than live ones: vacuum does not keep up.",
        mend "See vacuum_held_back and autovacuum_off; then VACUUM the table.";
    AutovacuumOff = "autovacuum_off", Warning, Postgres, Quick, promise 9,
        means "Autovacuum is off for a table: it grows without bound.",
        mend "Turn autovacuum on, in the server's settings or the table's.";
    KeyMissing = "key_missing", Error, Postgres, Quick, promise 2,
        means "A table of the schema lacks its primary key or a unique index, or an index is not valid: a restore was not completed, and rows can exist twice.",
        mend "Stop all processes and restore again, into an empty database to which nothing connects. An index that is not valid: REINDEX it.";
    FunctionOpen = "function_open", Error, Postgres, Quick, promise 21,
        means "A function that has the rights of its owner can be executed by every account: rights were not restored, because roles were missing.",
        mend "Create the missing roles, and run ops/postgres/roles.sql; without these roles, `revoke execute on function … from public`.";
    SequenceBehind = "sequence_behind", Error, Postgres, Full, promise 1,
        means "A sequence is behind the rows of its table, as after a restore while programs were connected: inserts fail, or new entries come before old ones.",
        mend "Stop all processes and restore again, into an empty database to which nothing connects; or raise the sequence with setval to the number in the finding.";
    ClockDifference = "clock_difference", Warning, Postgres, Quick, promise 4,
        means "The clocks of this machine and of the database differ. Leases and due times use the clock of the database, but the times in logs will not match.",
        mend "Synchronize both with a time server.";
    MissingPrivilege = "missing_privilege", Warning, Postgres, Quick, promise 1,
        means "This role lacks a privilege on a table that workers need.",
        mend "Grant select, insert, update and delete on all tables of schema milepost to the role that workers use.";
    FileDamaged = "file_damaged", Error, Sqlite, Full, promise 1,
        means "The file is damaged: its pages or indexes contradict each other.",
        mend "Stop all processes, keep a copy, and restore a backup or use `.recover` of the sqlite3 shell. Check disk and memory.";
    LogHeldBack = "log_held_back", Warning, Sqlite, Quick, promise 9,
        means "The write-ahead log of the file has grown large: a reader that stays open prevents it from being emptied, and all reads become slower.",
        mend "End the process that keeps a read transaction open; the log is emptied when another 32 MiB have been committed (less on a disk that is nearly full).";
    DiskShort = "disk_short", Warning, Sqlite, Quick, promise 1,
        means "The disk of the file is nearly full: soon nothing can be enqueued or ended.",
        mend "Free some disk space.";
}

impl Check {
    /// Returns whether a violation may disappear within moments, so that only a second check confirms it.
    #[must_use]
    pub const fn settles(self) -> bool {
        matches!(self, Self::GroupLeftWaiting)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const BEGIN: &str = "<!-- checks: made from the code -->\n";
    const END: &str = "<!-- end of checks -->\n";

    fn table() -> String {
        let head = "| code | severity | store | cost | promise | what it means | what to do | `--repair` |";
        let rows = Check::ALL.iter().map(|check| {
            let repair = check.repair().unwrap_or("nothing");
            format!(
                "| `{check}` | {} | {} | {} | {} | {} | {} | {repair} |",
                check.severity(),
                check.stores(),
                check.cost(),
                check.promise(),
                check.means(),
                check.remedy(),
            )
        });
        let rows: Vec<String> = rows.collect();
        format!("\n{head}\n|---|---|---|---|---|---|---|---|\n{}\n\n", rows.join("\n"))
    }

    /// Run with `MILEPOST_UPDATE_DOCS=1` to update the page.
    #[test]
    fn the_page_lists_every_check_as_the_code_has_it() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/DOCTOR.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = page.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let expected = format!("{head}{BEGIN}{}{END}{tail}", table());
        if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        assert!(
            page == expected,
            "docs/DOCTOR.md differs from the code; run this test with MILEPOST_UPDATE_DOCS=1"
        );
    }

    #[test]
    fn a_table_cell_has_no_bar() {
        for check in Check::ALL {
            let texts = [check.means(), check.remedy(), check.repair().unwrap_or("")];
            assert!(texts.iter().all(|text| !text.contains('|')), "{check}");
        }
    }
}
