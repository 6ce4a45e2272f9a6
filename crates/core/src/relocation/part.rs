//! What a store consists of, and places in it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ident::{BatchId, EventId, JobId};
use crate::state::named_enum;

named_enum! {
    /// One sort of rows, named after its table. They are carried in the order of declaration: where jobs stand comes
    /// last.
    Part {
        /// Process incarnations.
        Workers = "worker",
        /// Queues that somebody has paused at some time.
        Queues = "queue",
        /// Rates of kinds.
        KindLimits = "kind_limit",
        /// Slots and rates of groups.
        GroupLimits = "group_limit",
        /// Buckets of groups.
        GroupBuckets = "group_bucket",
        /// Work that comes back.
        Schedules = "schedule",
        /// What bulk jobs there are.
        BulkDefinitions = "bulk_definition",
        /// What versions DAGs have.
        DagVersions = "dag_version",
        /// Which version is the latest.
        Dags = "dag",
        /// Tasks of versions.
        DagTasks = "dag_task",
        /// What people did to the store.
        Audit = "audit",
        /// Who may ask servers for what.
        AccessTokens = "access_token",
        /// What was asked.
        Jobs = "job",
        /// Keys and who has them.
        Keys = "job_key",
        /// How far jobs said they were, and checkpoints.
        Progress = "progress",
        /// How far bulk jobs are.
        Bulks = "bulk",
        /// What operators set for bulk jobs.
        BulkSettings = "bulk_setting",
        /// Targets of bulk jobs that failed.
        BulkFailures = "bulk_failure",
        /// Files whose rows are the targets of bulk jobs.
        BulkFiles = "bulk_file",
        /// Rows of such files.
        BulkTargets = "bulk_target",
        /// Runs of DAGs.
        Batches = "batch",
        /// What they were started with.
        BatchInputs = "batch_input",
        /// Where their tasks stand.
        BatchTasks = "batch_task",
        /// Ends that wait to be counted.
        BatchSpreads = "batch_spread",
        /// What happened to batches.
        BatchHistory = "batch_history",
        /// Aggregates and how far their events are.
        Aggregates = "aggregate",
        /// The log of events.
        Events = "event",
        /// What consumers of events want.
        Consumers = "inbox_consumer",
        /// Events that they took in by their ids.
        ProcessedEvents = "processed_event",
        /// How far they are in aggregates.
        Checkpoints = "aggregate_checkpoint",
        /// Events that came too early.
        ParkedEvents = "inbox_parked",
        /// What their inboxes gave up.
        InboxLetters = "inbox_dead",
        /// How many duplicates were caught.
        InboxTallies = "inbox_tally",
        /// How far subscriptions are.
        Subscriptions = "subscription",
        /// Aggregates that are held back from them.
        ParkedAggregates = "parked_aggregate",
        /// Their events.
        HeldEvents = "parked_event",
        /// Events that relays gave up.
        DeadEvents = "dead_event",
        /// What happened.
        History = "history",
        /// Whose changes subscriptions want. After these, which are not to be recorded anew.
        ChangeSources = "change_source",
        /// Who holds groups.
        Slots = "group_slot",
        /// How jobs ended.
        Ended = "ended",
        /// Where jobs stand.
        Live = "live",
    }
}

/// A row's place in its part: its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Before the first row.
    Start,
    /// A job.
    Job(JobId),
    /// A number that rises.
    Number(i64),
    /// A name.
    Name(String),
    /// A job's key and kind; an aggregate's type and id.
    Key(String, String),
    /// A group and a slot of it.
    Slot(String, i64),
    /// A run and a row of its file.
    Row(JobId, i64),
    /// A batch.
    Batch(BatchId),
    /// A task of a batch.
    Task(BatchId, u32),
    /// A task of a version of a DAG.
    VersionTask(i64, u32),
    /// A consumer and an event that it took in; a subscription and one that was given up.
    Taken(String, EventId),
    /// A consumer or a subscription, and an aggregate's type and id; a kind or a DAG, and a subscription.
    Seat(String, String, String),
    /// A subscription, an aggregate's type and id, and a place in the log.
    Held(String, String, String, i64),
}
