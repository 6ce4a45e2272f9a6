//! The checks, a line or two each: adding one is an entry here and a statement in the stores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Cost, Severity, Stores};
use crate::state::named_enum;

macro_rules! checks {
    ($($name:ident = $code:literal, $severity:ident, $stores:ident, $cost:ident, promise $promise:literal,
        means $means:literal, mend $mend:literal $(, repair $repair:literal)?;)+) => {
        named_enum! {
            /// One question to the store.
            Check { $(#[doc = $means] $name = $code,)+ }
        }

        impl Check {
            /// How bad it is when it finds something.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// Which stores it is about.
            #[must_use]
            pub const fn stores(self) -> Stores {
                match self { $(Self::$name => Stores::$stores,)+ }
            }

            /// What it reads.
            #[must_use]
            pub const fn cost(self) -> Cost {
                match self { $(Self::$name => Cost::$cost,)+ }
            }

            /// The number of the promise in `docs/GUARANTEES.md` that it is about.
            #[must_use]
            pub const fn promise(self) -> u8 {
                match self { $(Self::$name => $promise,)+ }
            }

            /// What a finding means.
            #[must_use]
            pub const fn means(self) -> &'static str {
                match self { $(Self::$name => $means,)+ }
            }

            /// What a person does about it.
            #[must_use]
            pub const fn mend(self) -> &'static str {
                match self { $(Self::$name => $mend,)+ }
            }

            /// What a repair does about it; `None` where nothing is safe without a person.
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
        means "A job stands in live, but what was asked of it is gone.",
        mend "Restore the row of job from a backup. Without one the job cannot run: note it and delete its row of live.";
    JobWithoutPlace = "job_without_place", Error, All, Full, promise 1,
        means "A job stands neither in live nor in ended: nobody will run it and no list shows it.",
        mend "Read its history; enqueue it again where the repair cannot tell where it stood.",
        repair "Puts it back where its history says it stood, if that history is whole. The result of one that had succeeded is lost.";
    JobInBoth = "job_in_both", Error, All, Quick, promise 5,
        means "A job is live and has ended at once: it may run again after its end.",
        mend "Compare both rows with its history and delete the false one.",
        repair "Deletes the row that its history disagrees with, if it agrees with the other.";
    StateDiffers = "state_differs", Error, All, Full, promise 6,
        means "A job's row and the last entry of its history say different states: somebody changed one of them by hand.",
        mend "Find out which is true (`milepost jobs show`), then cancel, retry or rerun the job.";
    TokenDiffers = "token_differs", Error, All, Full, promise 4,
        means "A job's run token is not the highest of its history: an old run could be taken for the current one.",
        mend "Stop the workers that may hold it and raise the token to that of its history.",
        repair "Raises a token that is behind, unless the job runs.";
    AttemptsOver = "attempts_over", Error, All, Full, promise 8,
        means "A job has had more attempts than it may have.",
        mend "Cancel the job if it must not be tried again; see in its history who let it.";
    NotCreatedOnce = "not_created_once", Error, All, Full, promise 6,
        means "A job's history does not have exactly one entry of its creation.",
        mend "Its history was changed by hand or restored in part: take it as a hint only.";
    HistoryGap = "history_gap", Error, All, Full, promise 6,
        means "An entry of a history does not start from the state in which the one before it ended.",
        mend "Its history was changed by hand or restored in part: take it as a hint only.";
    HistoryOffGraph = "history_off_graph", Error, All, Full, promise 6,
        means "A history holds a change that no verb makes.",
        mend "Find out who writes to the tables without the verbs; its history is a hint only.";
    TokenOff = "token_off", Error, All, Full, promise 4,
        means "In a history the run token fell, or rose without a claim: a stale run may have been accepted.",
        mend "Look for doubled effects of that job; find out who writes to the tables without the verbs.";
    TwoEnds = "two_ends", Error, All, Full, promise 3,
        means "One run of a job has two accepted ends.",
        mend "Look for doubled effects of that job; find out who writes to the tables without the verbs.";
    KeyWithoutJob = "key_without_job", Error, All, Full, promise 2,
        means "A key names a job that is gone: enqueueing with it answers a job that nobody will run.",
        mend "Delete the row of job_key, then enqueue the job again if its work was not done.",
        repair "Deletes the key, so that the next enqueue with it makes a job.";
    JobWithoutKey = "job_without_key", Error, All, Full, promise 2,
        means "A job has a key that is not taken: the same key could make a second job.",
        mend "Insert the row of job_key.",
        repair "Takes the key for the job, if no other job has it.";
    KeyShared = "key_shared", Error, All, Full, promise 2,
        means "A job has a key that stands for another job: the key has two jobs.",
        mend "Decide which is the right one and cancel the other.";
    SlotWithoutHolder = "slot_without_holder", Error, All, Quick, promise 7,
        means "A slot of a group is taken by a job that does not hold it: the others wait for nothing.",
        mend "Delete the row of group_slot; upkeep hands the slot on.",
        repair "Frees the slot and hands it on.";
    HolderWithoutSlot = "holder_without_slot", Error, All, Quick, promise 7,
        means "A job of a group may run without a slot of it: more could run at once than the limit allows.",
        mend "Cancel or abort one of the group's jobs.",
        repair "Gives it the slot, if that is free.";
    GroupOverLimit = "group_over_limit", Warning, All, Quick, promise 7,
        means "More jobs hold a group than its limit: the limit was lowered and the surplus has not ended yet, or somebody changed rows by hand.",
        mend "Wait for the surplus to end. Where nobody lowered the limit, cancel or abort all jobs but as many as it allows.";
    GroupLeftWaiting = "group_left_waiting", Error, All, Quick, promise 9,
        means "A slot of a group is free and a job waits for it that is long due; or its rate has tokens again and nobody looks.",
        mend "Start a worker: its upkeep hands free slots on.",
        repair "Hands the slot on.";
    RunningWithoutWorker = "running_without_worker", Error, All, Quick, promise 9,
        means "A job runs under no worker: nobody will ever take it back.",
        mend "Abort and resume it (the old run is fenced off).",
        repair "Ends the run as one that was lost: it is tried again, or fails when its attempts are spent.";
    RunningPastLease = "running_past_lease", Error, All, Quick, promise 9,
        means "A job runs under a worker that is gone or whose lease ran out long ago: no living process takes it back.",
        mend "Start a worker: its upkeep takes the jobs of the dead back.",
        repair "Declares the worker dead and takes its jobs back, as upkeep does.";
    StopOverdue = "stop_overdue", Error, All, Quick, promise 9,
        means "A job was asked to stop, its grace time is long over, and it still runs.",
        mend "Start a worker: its upkeep fences off what does not stop.",
        repair "Fences its run off and ends the job as it was asked.";
    ReadyAtWrong = "ready_at_wrong", Error, All, Quick, promise 9,
        means "A job that waits has no time to start at and is never claimed, or one that does not wait has one and could be claimed.",
        mend "Set ready_at of jobs that wait, clear that of others.",
        repair "Sets it to now, or clears it.";
    ProgressWithoutJob = "progress_without_job", Warning, All, Full, promise 6,
        means "A row of progress belongs to a job that is gone.",
        mend "Delete it.",
        repair "Deletes it.";
    BulkWithoutJob = "bulk_without_job", Warning, All, Full, promise 13,
        means "A row of bulk belongs to a job that is gone.",
        mend "Delete it.",
        repair "Deletes it.";
    BulkLeftover = "bulk_leftover", Warning, All, Full, promise 13,
        means "Settings of a bulk job, targets that failed, or rows that were staged for it, belong to a bulk job that is gone.",
        mend "Delete them.",
        repair "Deletes them.";
    BulkRowsDiffer = "bulk_rows_differ", Error, All, Full, promise 13,
        means "Other rows are staged for a bulk job than it was started with: some are missing, or were added by hand.",
        mend "Cancel it if it is not done, and start it anew with its file; find out who writes to the tables without the verbs.";
    BulkEndDiffers = "bulk_end_differs", Error, All, Full, promise 13,
        means "A bulk job succeeded before it was through with its targets, or is through with them and did not succeed: somebody changed rows by hand, or another handler runs jobs of its name.",
        mend "Compare its notes, rows or jobs with its targets. Where some are missing start it anew; cancel a job that is through.";
    BulkTokenAhead = "bulk_token_ahead", Error, All, Full, promise 4,
        means "A bulk job was taken over with a run token that its job never had: no worker can go on with it.",
        mend "See in its history which tokens it had and who writes to the tables without the verbs; cancel it and start it anew.";
    BulkFailuresDiffer = "bulk_failures_differ", Error, All, Full, promise 13,
        means "A bulk job counted other failures than stand in the table: some are missing or were never counted.",
        mend "Compare its failures with what was done to their targets; find out who writes to the tables without the verbs.";
    BulkCursorBeyond = "bulk_cursor_beyond", Error, All, Full, promise 13,
        means "The cursor of a bulk job stands behind its last target, or stands though its last target is not known: targets may have been passed over.",
        mend "Abort it, compare what it did with its targets, and start it anew.";
    TaskStateDiffers = "task_state_differs", Error, All, Full, promise 9,
        means "A task of a batch stands elsewhere than its job or its inner batch, or is said to be under way and is not: what follows never runs, or ran too early.",
        mend "Find out who writes to the tables without the verbs. What ran too early stays: see `milepost batch show`.",
        repair "Puts it where its job or its inner batch stands, as failed where that is gone, and lets what follows run. Not while ends in its batch are still being counted.";
    PreCntDiffers = "pre_cnt_differs", Error, All, Full, promise 9,
        means "A task of a batch counts other ends than its predecessors had, or waits though all that it waits for has ended: it never runs, or ran too early.",
        mend "Find out who writes to the tables without the verbs. What ran too early stays: see `milepost batch show`.",
        repair "Counts anew and lets run, or skips, what waits and need not. Not while ends in its batch are still being counted.";
    BatchCountsDiffer = "batch_counts_differ", Error, All, Full, promise 9,
        means "A batch's counts, its state or the time of its end are not what its tasks say.",
        mend "Find out who writes to the tables without the verbs.",
        repair "Counts anew; the task that it is of another batch then stands where it does. Not while ends in it are still being counted.";
    BatchIncomplete = "batch_incomplete", Error, All, Full, promise 9,
        means "A batch that has not ended lacks its input or some of its tasks, or has more than its version: it cannot be brought to its end.",
        mend "Restore the rows from a backup, or cancel the batch and start another one. The other checks leave it out.";
    BatchLeftover = "batch_leftover", Warning, All, Full, promise 9,
        means "Tasks, an input, ends to be counted or a history belong to a batch that is gone.",
        mend "Delete them when no job of the batch is under way.",
        repair "Deletes them, unless a job of the batch is under way.";
    JobWithoutBatch = "job_without_batch", Warning, All, Full, promise 9,
        means "A job that has not ended belongs to a batch that is gone: nothing follows from its end.",
        mend "Cancel it, or let it run for its own sake.";
    TaskLeftDue = "task_left_due", Warning, All, Quick, promise 9,
        means "Tasks of a batch have been due for long, or ends wait to be counted: no living process sees to batches, or those that do work out large expressions of other batches first.",
        mend "Start a worker. If some live, another look tells whether the number falls; where it does not, their logs say why they cannot go on with the batch.";
    HistoryWithoutJob = "history_without_job", Warning, All, Full, promise 6,
        means "A history belongs to a job that is gone: its row of job was deleted by hand.",
        mend "Keep it as evidence, or delete it.";
    WorkerUnburied = "worker_unburied", Warning, All, Quick, promise 9,
        means "A worker's lease ran out long ago and nobody declared it dead: no living process does the upkeep.",
        mend "Start a worker.",
        repair "Declares it dead and takes back what it held, as upkeep does.";
    ScheduleOverdue = "schedule_overdue", Warning, All, Quick, promise 10,
        means "A tick of a schedule is long due and nobody has seen to it.",
        mend "Start a worker; if some live, their logs say why the schedule cannot tick.";
    WaitsByWrongClock = "waits_by_wrong_clock", Warning, All, Full, promise 10,
        means "A job waits for a time that was worked out while the clock was ahead: its history goes on in the future.",
        mend "Let it run as soon as it should with `milepost jobs snooze ID --for 1s`, or a longer time.";
    AggregateBehind = "aggregate_behind", Error, All, Full, promise 17,
        means "An aggregate says a lower sequence than its log has, or is not known though it has events: the next one of it is refused.",
        mend "Raise last_seq in its row of aggregate to the highest sequence of its events.",
        repair "Raises it, or makes the row.";
    AggregateInTwoSlots = "aggregate_in_two_slots", Error, Postgres, Full, promise 17,
        means "Events of one aggregate are in two slots: they can be published out of their order.",
        mend "Find out who writes to the tables without the verbs. Stop the relays, and give all of its rows the slot of its row of aggregate.";
    ParkedWithoutEvents = "parked_without_events", Error, All, Quick, promise 17,
        means "An aggregate is parked without an event: what is emitted of it waits behind nothing.",
        mend "Delete its row of parked_aggregate; relays that run learn of it when they start anew.",
        repair "Deletes the row.";
    ParkedWithoutAggregate = "parked_without_aggregate", Error, All, Quick, promise 17,
        means "An event is parked and its aggregate is not: nobody publishes it.",
        mend "Delete its rows of parked_event and have the subscription publish the aggregate again from that event on.";
    HeldEventGone = "held_event_gone", Error, All, Quick, promise 17,
        means "An event that is parked or was given up is gone from the log: it cannot be published any more.",
        mend "Restore the event from a backup if its receivers need it; find out who writes to the tables without the verbs.",
        repair "Deletes the row, and that of its parked aggregate when no other event is left of it.";
    NobodyPublishes = "nobody_publishes", Warning, All, Quick, promise 17,
        means "Events wait long for a subscription that is not paused, and nobody publishes them.",
        mend "Start a relay; pause the subscription where that is meant, or remove one that nobody needs.";
    SlotsMissing = "slots_missing", Error, Postgres, Quick, promise 17,
        means "A subscription does not have its 64 slots: events of those that are missing are never published.",
        mend "Restore the rows of subscription_slot and slot_position from a backup, or remove the subscription: a new one of its name publishes the whole log again.";
    WeakDurability = "weak_durability", Error, All, Quick, promise 1,
        means "A setting lets a crash of the machine lose or damage what was acknowledged.",
        mend "PostgreSQL: turn fsync and full_page_writes on. SQLite: keep the file on a local file system that allows WAL.";
    Promoted = "promoted", Warning, Postgres, Quick, promise 1,
        means "The server was promoted or restored within the last week: what the old one had acknowledged and not replicated is lost.",
        mend "Compare what clients were told since the last replicated commit with what is here, and enqueue what is missing. Set synchronous_standby_names so that nothing is lost the next time.";
    CommitsUnsafe = "commits_unsafe", Warning, Postgres, Quick, promise 1,
        means "synchronous_commit is off by default: jobs enqueued in your transactions can be lost in a crash of the server.",
        mend "Set synchronous_commit = on for the role or the transactions that enqueue. Claims and ends are safe.";
    VacuumHeldBack = "vacuum_held_back", Warning, Postgres, Quick, promise 9,
        means "An old snapshot keeps dead rows from being removed: claims get slower by and by.",
        mend "End the session, commit or roll back the prepared transaction, or drop the replication slot.";
    LongTransaction = "long_transaction", Warning, Postgres, Quick, promise 9,
        means "A transaction has been open for long: it holds locks and keeps dead rows from being removed.",
        mend "End the session; set idle_in_transaction_session_timeout for it.";
    DeadRows = "dead_rows", Warning, Postgres, Quick, promise 9,
        means "A table has more dead rows than living ones: vacuum does not keep up.",
        mend "See vacuum_held_back and autovacuum_off; then VACUUM the table.";
    AutovacuumOff = "autovacuum_off", Warning, Postgres, Quick, promise 9,
        means "Autovacuum is off for a table: it grows without bound.",
        mend "Turn autovacuum on, in the server's settings or the table's.";
    ClockDifference = "clock_difference", Warning, Postgres, Quick, promise 4,
        means "The clocks of this machine and of the database differ. Leases and due times go by the database's, but logs will not match.",
        mend "Let both follow a time server.";
    MissingPrivilege = "missing_privilege", Warning, Postgres, Quick, promise 1,
        means "This role may not do to a table what a worker has to.",
        mend "Grant select, insert, update and delete on all tables of schema milepost to the role that workers use.";
    FileDamaged = "file_damaged", Error, Sqlite, Full, promise 1,
        means "The file is damaged: its pages or indexes contradict each other.",
        mend "Stop all processes, keep a copy, and restore a backup or use `.recover` of the sqlite3 shell. Check disk and memory.";
    LogHeldBack = "log_held_back", Warning, Sqlite, Quick, promise 9,
        means "The log beside the file has grown large: a reader that stays open keeps it from being emptied, and all reads get slower.",
        mend "End the process that keeps a read transaction open; the log is emptied by the next commits.";
    DiskShort = "disk_short", Warning, Sqlite, Quick, promise 1,
        means "The disk of the file is nearly full: soon nothing can be enqueued or ended.",
        mend "Make room.";
}

impl Check {
    /// Whether what it finds may be over in a moment, so that only a second look tells.
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
                check.mend(),
            )
        });
        let rows: Vec<String> = rows.collect();
        format!("\n{head}\n|---|---|---|---|---|---|---|---|\n{}\n\n", rows.join("\n"))
    }

    /// Run with `MILEPOST_UPDATE_DOCS=1` to write them anew.
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
            "docs/DOCTOR.md is not what the code says; run this with MILEPOST_UPDATE_DOCS=1"
        );
    }

    #[test]
    fn a_table_cell_has_no_bar() {
        for check in Check::ALL {
            let texts = [check.means(), check.mend(), check.repair().unwrap_or("")];
            assert!(texts.iter().all(|text| !text.contains('|')), "{check}");
        }
    }
}
